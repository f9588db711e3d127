import pytest

from local.functions_host.http import parse_route

ID = "123e4567-e89b-12d3-a456-426614174000"


PATHS: list[tuple[str, str, dict[str, str] | None]] = [
    ("items", "/items", {}),
    ("items", "/ITEMS/", {}),
    ("items", "/items//", None),
    ("items", "/items/1", None),
    ("items/{id}", "/items/a%20b", {"id": "a b"}),
    ("items/{id}", "/items/a%2Fb%2fc%252F", {"id": "a%2Fb%2fc%2F"}),
    ("items/{id}", "/items", None),
    ("items/{id:int}", "/items/x", None),
    ("items/{id:int}", "/items/3000000000", None),
    ("items/{id?}", "/items", {}),
    ("items/{id:int?}", "/items/7", {"id": "7"}),
    ("{*path}", "/", {}),
    ("{nothing:maxlength(0)?}", "/", {}),
    ("files/{*path}", "/files/a/b%20c", {"path": "a/b c"}),
    ("files/{*path}", "/files/a//", {"path": "a//"}),
    ("files/{*path}", "/files//a", None),
    ("a/{b:guid}", f"/a/{ID}", {"b": ID}),
    ("a/{b:length(2,3)}", "/a/x", None),
    ("a/{b:maxlength(2)}", "/a/xyz", None),
    ("a/{b:int:min(10)}", "/a/9", None),
    ("a/{b:range(1,5)}", "/a/6", None),
    (r"a/{b:regex(^\d+/?$)}", "/a/x", None),
    (r"a/{b:regex(^[0-9]+$)}", "/a/12", {"b": "12"}),
    ("a/{b}-{c}", "/a/x-y", {"b": "x", "c": "y"}),
]


def test_a_path_matches_its_template_or_not() -> None:
    wrong = [(template, path) for template, path, values in PATHS if parse_route(template).match(path) != values]
    assert wrong == []


def test_a_fixed_part_goes_before_a_constraint_before_any_value_before_the_rest_of_the_path() -> None:
    templates = ["a/{*rest}", "a/{b}", "a/{b:int}", "a/b", "{x}/b"]
    found = sorted(map(parse_route, templates), key=lambda route: route.precedence)
    assert [route.template for route in found] == ["a/b", "a/{b:int}", "a/{b}", "a/{*rest}", "{x}/b"]


def test_a_template_that_cannot_be_matched_is_refused() -> None:
    for template in ("a/{b:colour}", "a/{b=1}", "a/{", "a/{b", "a/{b:range(1)}", "a/{b:min(x)}"):
        with pytest.raises(ValueError, match="of the route cannot be read"):
            parse_route(template)
