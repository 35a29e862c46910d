"""The vocabulary: function space, gradients, hypotheses, models, and the protocols between them."""
