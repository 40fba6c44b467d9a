"""What the chapter *Double descent* needs: risks of least squares, and their power laws."""
