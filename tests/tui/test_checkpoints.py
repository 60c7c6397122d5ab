"""The explorer shows the page of two checkpoints in Compare."""

from tests.auditing.making import write_examples
from tests.tui.stage import driven, opened


@driven
async def test_two_checkpoints_are_shown_as_one_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path)
    async with opened("compare half.safetensors original.safetensors") as person:
        text = person.app.screen.query_one("#details").text
        assert "4 of 4 tensors fail" in text
        assert "actual is expected rounded to binary16" in text
        await person.press("2", "3", "4")
        assert "4 of 4 tensors fail" in person.app.screen.query_one("#details").text
