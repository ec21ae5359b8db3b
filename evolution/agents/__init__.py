"""The roles played by language models; loaded only when a model is really used."""
