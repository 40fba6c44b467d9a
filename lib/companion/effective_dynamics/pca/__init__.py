"""Mathematics of the chapter pca."""
