"""What single chapters of the part *foundations* need, a module or a package each."""
