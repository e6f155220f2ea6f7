"""Background workers and many items."""

import pytest

from tapgate.runtime.background import do_for_each


async def test_item_that_fails_does_not_stop_the_work_on_others() -> None:
    done = []

    async def work(item: int) -> None:
        if item % 2:
            raise ValueError(item)
        done.append(item)

    with pytest.raises(ValueError, match="1"):  # the first error, for the log
        await do_for_each(range(6), work)
    assert done == [0, 2, 4]
    await do_for_each([6], work)
    assert done == [0, 2, 4, 6]
