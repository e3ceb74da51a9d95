use super::*;

/// The client side of an exchange. Returns its final message, and the server's expected answer.
fn answer(password: &str, first_bare: &str, header: &[u8], challenge: &str) -> (String, String) {
    let field =
        |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name)).unwrap().to_owned();
    let verifier =
        Verifier::with_salt(password, BASE64.decode(field("s=")).unwrap(), field("i=").parse().unwrap());
    let without_proof = format!("c={},r={}", BASE64.encode(header), field("r="));
    let message = format!("{first_bare},{challenge},{without_proof}");
    let mut salted = [0; KEY_BYTES];
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        verifier.iterations,
        &verifier.salt,
        password.as_bytes(),
        &mut salted,
    );
    let client_key = hmac(&salted, &[b"Client Key"]);
    let signature = hmac(&verifier.stored_key, &[message.as_bytes()]);
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
    let expected = format!("v={}", BASE64.encode(hmac(&verifier.server_key, &[message.as_bytes()])));
    (format!("{without_proof},p={}", BASE64.encode(proof)), expected)
}

/// Goal: keys are derived as in RFC 7677. Method: the example of its section 3, with user,
/// password, salt and messages.
#[test]
fn rfc_7677_example() {
    let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    let verifier = Verifier::with_salt("pencil", salt, NonZeroU32::new(4096).unwrap());
    let exchange = Exchange {
        verifier,
        nonce: "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned(),
        client_first_bare: "n=user,r=rOprNGfwEbeRWgbNEkqO".to_owned(),
        server_first:
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
                .to_owned(),
        binding: b"n,,".to_vec(),
    };
    let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    assert_eq!(exchange.finish(last).unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

/// Goal: the right password is accepted and a wrong one refused, with and without channel binding.
/// Method: a client written for the test.
#[test]
fn passwords_are_told_apart() {
    let verifier = Verifier::new("café \u{2168}").unwrap();
    for (flag, end_point) in [("n", None), ("y", None), ("p=tls-server-end-point", Some(&b"digest"[..]))] {
        let bare = "n=,r=abc";
        let first = format!("{flag},,{bare}");
        let header = [format!("{flag},,").as_bytes(), end_point.unwrap_or_default()].concat();
        let exchange = Exchange::start(verifier.clone(), &first, end_point, false).unwrap();
        // SASLprep maps the Roman numeral nine to two letters.
        let (last, expected) = answer("café IX", bare, &header, exchange.challenge());
        assert_eq!(exchange.finish(&last), Ok(expected));
        let (last, _) = answer("cafe IX", bare, &header, exchange.challenge());
        assert_eq!(exchange.finish(&last), Err(Refusal::WrongPassword));
    }
}

/// Goal: these are refused: a client that was kept from seeing the mechanism with channel binding,
/// a binding to another certificate, another nonce, and invalid SCRAM messages.
#[test]
fn tampering_is_refused() {
    let verifier = Verifier::new("secret").unwrap();
    let start = |first: &str, end_point: Option<&[u8]>, could_bind| {
        Exchange::start(verifier.clone(), first, end_point, could_bind)
    };
    assert!(matches!(start("y,,n=,r=abc", None, true), Err(Refusal::Malformed(_))));
    assert!(matches!(start("n,,n=,r=abc", Some(b"digest"), true), Err(Refusal::Malformed(_))));
    assert!(matches!(start("p=tls-unique,,n=,r=abc", Some(b"digest"), true), Err(Refusal::Malformed(_))));
    for wrong in
        ["", "n", "n,,", "n,,n=,r=", "n,,n=,r=a b", "n,a=root,n=,r=abc", "n,,m=x,n=,r=abc", "n,,r=abc,n="]
    {
        assert!(matches!(start(wrong, None, false), Err(Refusal::Malformed(_))), "{wrong}");
    }
    let exchange = start("p=tls-server-end-point,,n=,r=abc", Some(b"digest"), true).unwrap();
    let (last, _) = answer("secret", "n=,r=abc", b"p=tls-server-end-point,,other", exchange.challenge());
    assert!(matches!(exchange.finish(&last), Err(Refusal::Malformed(_))));
    let (last, _) = answer("secret", "n=,r=abc", b"p=tls-server-end-point,,digest", exchange.challenge());
    assert!(exchange.finish(&last).is_ok());
    assert!(matches!(exchange.finish(&last.replace("r=abc", "r=abd")), Err(Refusal::Malformed(_))));
    for wrong in ["", "p=", ",p=", "c=,r=,p=", "c=biws,r=abc,p=AAAA"] {
        assert!(matches!(exchange.finish(wrong), Err(Refusal::Malformed(_))), "{wrong}");
    }
}

/// Goal: a verifier survives a round trip through its text, which has PostgreSQL's format; damaged
/// text is refused; the debug form contains no secrets.
#[test]
fn verifiers_round_trip_through_text() {
    let verifier = Verifier::new("secret").unwrap();
    let text = verifier.to_string();
    assert_eq!(Verifier::parse(&text), Some(verifier.clone()));
    for wrong in
        ["", "md5abc", "SCRAM-SHA-256$0:AAAA$AAAA:AAAA", &text[..text.len() - 4], &text.replace("256", "1")]
    {
        assert_eq!(Verifier::parse(wrong), None, "{wrong}");
    }
    assert!(!format!("{verifier:?}").contains("key"));
    assert_eq!(Verifier::decoy(b"s", "a", None).to_string(), Verifier::decoy(b"s", "a", None).to_string());
    assert_ne!(Verifier::decoy(b"s", "a", None).to_string(), Verifier::decoy(b"s", "b", None).to_string());
    assert!(is_same(b"ab", b"ab") && !is_same(b"ab", b"ac") && !is_same(b"ab", b"a"));
}
