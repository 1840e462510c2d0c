"""Whether every server and every browser understand each other, in small tests with yes or no for an answer."""
