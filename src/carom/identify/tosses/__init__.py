"""Parameters from whole recordings of bodies that move freely: tosses, and bodies that meet on an air table."""
