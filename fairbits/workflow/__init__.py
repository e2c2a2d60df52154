"""What the commands do: fit, certify and audit tables, and write what is known about a model."""
