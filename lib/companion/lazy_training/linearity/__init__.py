"""Mathematics of the chapter linearity."""
