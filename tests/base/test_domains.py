"""A registrable domain is what the whole list of public suffixes says."""

from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList

from base.domains import registrable_domain


def test_a_domain_is_the_one_by_the_whole_list() -> None:
    rules = [line for line in Path(PSLFILE).read_text("utf-8").splitlines() if line and not line.startswith("//")]
    others = [rule for rule in rules if rule.split(".")[-1] in ("jp", "рф", "香港", "com")]
    # Wildcards, exceptions, and names in other scripts, in both forms.
    chosen = [rule for rule in others if not rule.isascii() or rule[0] in "*!"] + others[::100] + rules[::1000]
    names = {rule.lstrip("!").replace("*", "any") for rule in chosen}
    names |= {name.encode("idna").decode() for name in names} | {"unlisted", "127.0.0.1", "[::1]", "xn--9.xn--9.", ""}
    hosts = [host for name in names for host in (name, f"a.{name}", f"B.A.{name}", f"a.{name}.")]
    whole = PublicSuffixList()
    assert {host: registrable_domain(host) for host in hosts} == {
        host: whole.privatesuffix(host) or host for host in hosts
    }
