"""What the chapter *Beyond: predicted spectra* needs and no other."""
