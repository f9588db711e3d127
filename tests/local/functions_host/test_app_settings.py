from pathlib import Path

from local.functions_host.app_settings import AppSettings, read_app_settings


def test_a_wrong_file_is_a_fault_that_names_the_error(tmp_path: Path) -> None:
    wrong = {
        "{": "is not JSON",
        "[]": '"Values"',
        '{"Values": []}': '"Values"',
        '{"IsEncrypted": true, "Values": {}}': "IsEncrypted",
        '{"Values": {"N": 1}}': "Values.N: must be a text",
    }
    for content, fault in wrong.items():
        (tmp_path / "local.settings.json").write_text(content)
        faults: list[str] = []
        read_app_settings(tmp_path, {}, faults)
        assert len(faults) == 1, content
        assert fault in faults[0]


def test_placeholders_are_expanded_and_each_unset_one_is_a_fault_with_its_name() -> None:
    faults: list[str] = []
    settings = AppSettings({"A": "x", "EMPTY": ""}, {})
    assert settings.expand("%A%-%A%", "here", faults) == "x-x"
    assert settings.expand("plain", "here", faults) == "plain"
    assert faults == []
    settings.expand("%NONE%%EMPTY%", "function f: eventHubName", faults)
    assert faults == [
        "function f: eventHubName: setting NONE is not set (the binding says %NONE%)",
        "function f: eventHubName: setting EMPTY is not set (the binding says %EMPTY%)",
    ]
