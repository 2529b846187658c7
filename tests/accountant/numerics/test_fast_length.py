"""Fast lengths are the least products of 2, 3 and 5."""

from scipy.fft import next_fast_len

from accountant.numerics.fast_length import fast_length


def test_fast_lengths_are_scipys():
    sizes = [*range(1, 3000), 2**19 - 1, 2**19 + 1, 10**6 + 3]
    assert [fast_length(n) for n in sizes] == [next_fast_len(n, real=True) for n in sizes]
