"""What can be said of a model: certificates, diagnosis, pictures."""
