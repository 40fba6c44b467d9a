"""What single chapters of the part *attention* need, a module or a package each."""
