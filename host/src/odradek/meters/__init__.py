"""The metrics of the programs themselves, and the ways out of the process."""
