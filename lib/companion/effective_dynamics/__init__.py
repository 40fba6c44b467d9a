"""What single chapters of the part *effective dynamics* need, a module or a package each."""
