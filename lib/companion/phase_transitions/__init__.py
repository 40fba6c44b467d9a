"""What single chapters of the part *phase transitions* need, a module or a package each."""
