"""`pocket`, the embedded model: it looks, writes down what it saw, and a small language model answers from that."""
