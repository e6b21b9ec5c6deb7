"""``odradek spark`` as a standalone program, for ``spark-submit``."""

from odradek_spark.cli.main import spark

if __name__ == "__main__":
    spark(prog_name="odradek spark")
