"""Jobs on the tables: each a function from DataFrames to a DataFrame, and a run that writes and commits."""
