"""Mathematics of the chapter xor-population-matrices."""
