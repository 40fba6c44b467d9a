"""Mathematics of the chapter xor-alignment."""
