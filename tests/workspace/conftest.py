"""Assertions of helpers are explained as those of tests are."""

import pytest

pytest.register_assert_rewrite("workspace.git_saving")
