"""Jobs on the tables: each has a function from DataFrames to a DataFrame, and a run that commits."""
