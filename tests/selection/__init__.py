"""Which cases of the tests run in `make test`, and which in `make thorough` alone."""
