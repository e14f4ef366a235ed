"""What all experiments share: points kept on disk, tables, pictures, verdicts and timing."""
