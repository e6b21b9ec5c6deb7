"""Both sides of SCRAM against the exchange of RFC 7677, each other, and malformed messages."""

from __future__ import annotations

from base64 import b64decode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.security.sasl_server import SaslFailure
from odradek.security.scram import ScramMechanism, mechanism_named
from odradek.security.scram_client import ScramSaslClient
from odradek.security.scram_server import ScramSaslServer
from support.examples import examples
from support.known_users import SECRET, KnownUsers, credential

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
"""RFC 7677, section 3: user "user", password "pencil"."""


def rfc_server() -> ScramSaslServer:
    users = KnownUsers({})
    users.made[SHA_256, "user"] = credential(SHA_256, "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    return ScramSaslServer(SHA_256, users, SECRET, SERVER_NONCE)


def server(scram: ScramMechanism = SHA_256, **passwords: str) -> ScramSaslServer:
    return ScramSaslServer(scram, KnownUsers(passwords, scram), SECRET, "server-nonce")


def exchange(client: ScramSaslClient, with_server: ScramSaslServer) -> str | None:
    client.finish(with_server.evaluate(client.final(with_server.evaluate(client.first()))))
    return with_server.user


def test_the_server_answers_as_in_the_rfc() -> None:
    side = rfc_server()

    answers = [side.evaluate(CLIENT_FIRST), side.evaluate(CLIENT_FINAL)]

    assert answers == [SERVER_FIRST, SERVER_FINAL]
    assert side.user == "user"


def test_the_client_answers_as_in_the_rfc() -> None:
    side = ScramSaslClient(SHA_256, "user", "pencil", CLIENT_NONCE)

    messages = [side.first(), side.final(SERVER_FIRST)]
    side.finish(SERVER_FINAL)

    assert messages == [CLIENT_FIRST, CLIENT_FINAL]


@pytest.mark.parametrize("scram", list(ScramMechanism))
@pytest.mark.parametrize("name", ["alice", "a,b=c", "=2C", "žofie"])
def test_both_sides_agree_on_names_with_special_characters(scram: ScramMechanism, name: str) -> None:
    client = ScramSaslClient(scram, name, "pass,word=", "client-nonce")

    proved = exchange(client, server(scram, **{name: "pass,word="}))

    assert proved == name


@pytest.mark.parametrize("scram", list(ScramMechanism))
def test_a_wrong_password_is_detected_by_the_proof_alone(scram: ScramMechanism) -> None:
    client, side = ScramSaslClient(scram, "alice", "wrong", "client-nonce"), server(scram, alice="right")

    final = client.final(side.evaluate(client.first()))

    with pytest.raises(SaslFailure, match="wrong password"):
        side.evaluate(final)
    assert side.user is None


def test_an_unknown_user_cannot_be_told_from_a_known_one() -> None:
    first = b"n,,n=nobody,r=x"

    answers = {server(alice="secret").evaluate(first) for _ in range(2)}

    (answer,) = answers
    assert answer.startswith(b"r=xserver-nonce,s=")
    assert answer.endswith(b",i=4096")


def test_an_unknown_user_cannot_authenticate() -> None:
    client, side = ScramSaslClient(SHA_256, "nobody", "", "client-nonce"), server(alice="secret")

    final = client.final(side.evaluate(client.first()))

    with pytest.raises(SaslFailure, match="wrong password"):
        side.evaluate(final)


def test_extensions_are_ignored() -> None:
    side = rfc_server()

    answer = side.evaluate(CLIENT_FIRST + b",tokenauth=true,x=1")

    assert answer == SERVER_FIRST


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        CLIENT_FIRST[:-1].replace(b"r=", b"r"),
        b"p=tls-unique,,n=user,r=abc",
        b"n,,m=x,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,,n=us\x00er,r=abc",
        b"n,,n=\xff\xfe,r=abc",
        b"n,a=user",
        b"x" * 70_000,
        b"n,,n=user,r=" + b"x" * 70_000,
        CLIENT_FINAL,
        b"\0user\0pencil",
    ],
)
def test_a_malformed_first_message_fails(message: bytes) -> None:
    side = rfc_server()

    with pytest.raises(SaslFailure) as failure:
        side.evaluate(message)

    assert failure.value.message is None


def test_another_authorization_id_is_refused_with_kafkas_message() -> None:
    side = rfc_server()

    with pytest.raises(SaslFailure) as failure:
        side.evaluate(b"n,a=root,n=user,r=abc")

    assert failure.value.message == (
        "Authentication failed: Client requested an authorization id that is different from username"
    )


PROOF = CLIENT_FINAL.partition(b",p=")[2]
NONCE = CLIENT_FINAL.split(b",")[1]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        CLIENT_FIRST,
        CLIENT_FINAL[:-1],
        CLIENT_FINAL[:40],
        CLIENT_FINAL.replace(NONCE, b"r=rOprNGfwEbeRWgbNEkqO"),
        CLIENT_FINAL.replace(NONCE, NONCE + b"x"),
        CLIENT_FINAL.replace(b"c=biws", b"c=eSws"),
        CLIENT_FINAL.replace(b"c=biws", b"c=cD10bHMtdW5pcXVlLCw="),
        CLIENT_FINAL.replace(b"c=biws", b"c=*"),
        CLIENT_FINAL.replace(PROOF, b""),
        CLIENT_FINAL.replace(PROOF, b"AAAA"),
        CLIENT_FINAL.replace(PROOF, b"A" * 43 + b"="),
        CLIENT_FINAL.replace(b",p=", b",x=1,p="),
        CLIENT_FINAL + b",x=1",
    ],
)
def test_a_modified_final_message_fails(message: bytes) -> None:
    side = rfc_server()
    side.evaluate(CLIENT_FIRST)

    with pytest.raises(SaslFailure):
        side.evaluate(message)

    assert side.user is None


def test_a_downgraded_header_fails() -> None:
    """The client sent y (it supports channel binding), and an attacker changed it to n."""
    side = rfc_server()
    side.evaluate(CLIENT_FIRST)

    with pytest.raises(SaslFailure, match="the header differs"):
        side.evaluate(CLIENT_FINAL.replace(b"c=biws", b"c=eSws"))


def test_a_token_after_the_final_one_fails() -> None:
    side = rfc_server()
    side.evaluate(CLIENT_FIRST)
    side.evaluate(CLIENT_FINAL)

    with pytest.raises(SaslFailure, match="after the final one"):
        side.evaluate(CLIENT_FINAL)


@pytest.mark.parametrize(
    "message",
    [
        SERVER_FIRST.replace(b"r=rOpr", b"r=Xopr"),
        SERVER_FIRST.replace(SERVER_NONCE.encode(), b""),
        SERVER_FIRST.replace(b"i=4096", b"i=4095"),
        SERVER_FIRST.replace(b"i=4096", b"i=2000000000"),
        SERVER_FIRST.replace(b"i=4096", b"i=-1"),
        SERVER_FIRST.replace(b"s=W22Z", b"s=*"),
        b"",
        b"e=other-error",
    ],
)
def test_the_client_refuses_a_first_message_that_it_cannot_trust(message: bytes) -> None:
    client = ScramSaslClient(SHA_256, "user", "pencil", CLIENT_NONCE)

    with pytest.raises(SaslFailure):
        client.final(message)


@pytest.mark.parametrize("message", [b"v=" + b"A" * 43 + b"=", b"v=", b"", b"e=invalid-proof"])
def test_the_client_refuses_a_server_without_a_valid_signature(message: bytes) -> None:
    client = ScramSaslClient(SHA_256, "user", "pencil", CLIENT_NONCE)
    client.final(SERVER_FIRST)

    with pytest.raises(SaslFailure):
        client.finish(message)


@settings(max_examples=examples(200))
@given(
    st.lists(st.one_of(st.binary(max_size=200), st.sampled_from([CLIENT_FIRST, SERVER_FIRST])), max_size=3)
)
def test_only_the_right_proof_authenticates(tokens: list[bytes]) -> None:
    side = rfc_server()

    for token in tokens:
        try:
            side.evaluate(token)
        except SaslFailure:
            break

    assert side.user is None


def test_mechanisms_have_their_sasl_names() -> None:
    names = {each.mechanism_name: each for each in ScramMechanism}

    found = [mechanism_named(name) for name in ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "scram-sha-256")]

    assert names == {"SCRAM-SHA-256": SHA_256, "SCRAM-SHA-512": SHA_512}
    assert found == [SHA_256, SHA_512, None, None]


def test_a_credential_does_not_print_its_keys() -> None:
    made = credential(SHA_512, "secret")

    assert "stored_key=" not in repr(made)
