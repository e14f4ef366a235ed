"""Jobs that test hypotheses (`bags test NAME`)."""
