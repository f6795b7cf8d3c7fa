//! Against receivers on this machine.

use std::{collections::HashMap, sync::atomic::AtomicUsize, time::Duration};

use futures::FutureExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use super::*;

const A: KeyPrint = KeyPrint([1; 16]);
const B: KeyPrint = KeyPrint([2; 16]);

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Self-signed, for `hook.example` and 127.0.0.1, from 2000 to 2100. Made with Python's `cryptography`:
///
/// ```python
/// key = ec.generate_private_key(ec.SECP256R1())
/// name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hook.example")])
/// names = [x509.DNSName("hook.example"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
/// cert = (x509.CertificateBuilder(name, name, key.public_key(), 1, at(2000), at(2100))
///     .add_extension(x509.SubjectAlternativeName(names), False)
///     .add_extension(x509.BasicConstraints(False, None), True)
///     .sign(key, hashes.SHA256()))
/// ```
const CERTIFICATE: &[u8] = include_bytes!("testdata/cert.pem");
const KEY: &[u8] = include_bytes!("testdata/key.pem");

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What a receiver got, and what it says to it.
struct Receiver {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Receiver {
    async fn start() -> Receiver {
        Receiver { listener: TcpListener::bind("127.0.0.1:0").await.unwrap(), tls: None }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?a=b", self.port())
    }

    /// Takes one request and gives this answer.
    async fn answer(&self, answer: &str) -> String {
        let (socket, _) = self.listener.accept().await.unwrap();
        match &self.tls {
            None => talk(socket, answer).await,
            // A client that does not trust us hangs up.
            Some(tls) => match tls.accept(socket).await {
                Ok(socket) => talk(socket, answer).await,
                Err(_) => String::new(),
            },
        }
    }
}

async fn talk(mut socket: impl AsyncRead + AsyncWrite + Unpin, answer: &str) -> String {
    let mut got = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = socket.read(&mut chunk).await.unwrap();
        got.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&got);
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
            body.len() >= length.unwrap().parse().unwrap()
        });
        if whole || read == 0 {
            break;
        }
    }
    // It need not take all of it.
    drop(socket.write_all(answer.as_bytes()).await);
    drop(socket.shutdown().await);
    String::from_utf8(got).unwrap()
}

fn poster(allow_private: bool, table: &[(&'static str, &[&str])]) -> Poster {
    let addresses = |of: &[&str]| of.iter().map(|it| it.parse().unwrap()).collect();
    let table = table.iter().map(|(name, of)| (*name, addresses(of))).collect::<HashMap<_, _>>();
    let resolver = Resolver::Table(table, AtomicUsize::new(0));
    Poster::with(allow_private, resolver)
}

fn lookups(poster: &Poster) -> usize {
    let Resolver::Table(_, count) = &poster.resolver else { panic!("not of tests") };
    count.load(std::sync::atomic::Ordering::Relaxed)
}

fn delivery(url: &str) -> Delivery {
    Delivery {
        owner: A,
        target: Target::parse(url).unwrap(),
        shown: Shown::Signature {
            id: "s_m".into(),
            timestamp: 1_700_000_000,
            signature: "v1,abc".into(),
        },
        body: Bytes::from_static(br#"{"type":"x"}"#),
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("in time")
}

#[tokio::test]
async fn a_delivery_is_one_post_with_its_headers() {
    let receiver = Receiver::start().await;
    let poster = poster(true, &[]);
    let posted = poster.post(delivery(&receiver.url()));
    let (posted, got) = within(async { tokio::join!(posted, receiver.answer(OK)) }).await;
    posted.unwrap();
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"type":"x"}"#);
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /hook?a=b HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: 127.0.0.1:{}", receiver.port());
    let agent = concat!("user-agent: clawmesh/", env!("CARGO_PKG_VERSION"));
    let expect = [
        "connection: close",
        "content-length: 12",
        "content-type: application/json",
        &host,
        agent,
        "webhook-id: s_m",
        "webhook-signature: v1,abc",
        "webhook-timestamp: 1700000000",
    ];
    assert_eq!(lines, expect);
}

#[tokio::test]
async fn only_2xx_is_success_and_nothing_is_followed() {
    let receiver = Receiver::start().await;
    let poster = poster(true, &[]);
    let check = async |answer: &str| {
        let posted = poster.post(delivery(&receiver.url()));
        within(async { tokio::join!(posted, receiver.answer(answer)) }).await.0
    };
    for status in [200, 201, 202, 204] {
        check(&format!("HTTP/1.1 {status} Fine\r\n\r\n")).await.unwrap();
    }
    for status in [300, 304, 400, 404, 410, 429, 500, 503] {
        let failed = check(&format!("HTTP/1.1 {status} No\r\n\r\n")).await.unwrap_err();
        assert!(matches!(&failed, PostError::Status(it) if it.as_u16() == status), "{failed}");
    }
    let there = receiver.url();
    for status in [301, 302, 307, 308] {
        let moved = format!("HTTP/1.1 {status} Moved\r\nlocation: {there}\r\n\r\n");
        // A second request would wait for an answer that nobody gives, and time out.
        assert!(matches!(check(&moved).await, Err(PostError::Status(_))), "{status}");
    }
    for nonsense in ["", "hello\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
        let failed = check(nonsense).await.unwrap_err();
        assert!(matches!(&failed, PostError::Http(_)), "{nonsense:?}: {failed}");
    }
    let head = "x-long: ".to_owned() + &"x".repeat(WEBHOOK_HEAD_BYTES_MAX);
    let failed = check(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n")).await.unwrap_err();
    assert!(matches!(&failed, PostError::Http(_)), "{failed}");
}

#[tokio::test]
async fn an_answer_is_not_read_to_its_end() {
    let receiver = Receiver::start().await;
    let poster = poster(true, &[]);
    let posted = poster.post(delivery(&receiver.url()));
    let endless = async {
        let (mut socket, _) = receiver.listener.accept().await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut sent = 0_usize;
        // Until the client hangs up.
        while let Ok(more) = socket.write(&[b'x'; 65_536]).await {
            sent += more;
        }
        sent
    };
    let (posted, sent) = within(async { tokio::join!(posted, endless) }).await;
    posted.unwrap();
    assert!(sent < 100_000_000, "{sent} bytes were taken");
}

#[tokio::test]
async fn what_is_not_public_is_not_connected_to() {
    let receiver = Receiver::start().await;
    let port = receiver.port();
    let table: &[(&'static str, &[&str])] = &[
        ("public.example", &["8.8.8.8"]),
        ("loopback.example", &["127.0.0.1"]),
        ("mixed.example", &["8.8.8.8", "10.0.0.1"]),
        ("mapped.example", &["::ffff:127.0.0.1"]),
        ("empty.example", &[]),
    ];
    let strict = poster(false, table);
    let target = |host: &str| Target::parse(&format!("http://{host}:{port}/")).unwrap();
    strict.check(A, &target("public.example")).await.unwrap();
    let private = ["loopback.example", "mixed.example", "mapped.example", "127.0.0.1", "[::1]"];
    for host in private.into_iter().chain(["2130706433", "[::ffff:7f00:1]", "169.254.169.254"]) {
        let refused = strict.check(A, &target(host)).await.unwrap_err();
        assert!(matches!(refused, PostError::NotPublic(_)), "{host}: {refused}");
        let delivery = delivery(&format!("http://{host}:{port}/"));
        let refused = strict.post(delivery).await.unwrap_err();
        assert!(matches!(refused, PostError::NotPublic(_)), "{host}: {refused}");
    }
    let unknown = strict.check(A, &target("unknown.example")).await.unwrap_err();
    assert!(matches!(unknown, PostError::Lookup(_)), "{unknown}");
    let nowhere = strict.post(delivery("http://empty.example/")).await.unwrap_err();
    assert!(matches!(nowhere, PostError::NoAddress), "{nowhere}");
    poster(true, &[]).check(A, &target("127.0.0.1")).await.unwrap();
    let accepted = timeout(Duration::ZERO, receiver.listener.accept()).await;
    assert!(accepted.is_err(), "somebody connected");
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_each_delivery() {
    let receiver = Receiver::start().await;
    let poster = poster(true, &[("hook.example", &["127.0.0.1"])]);
    for n in 1..=2 {
        let url = format!("http://hook.example:{}/", receiver.port());
        let posted = poster.post(delivery(&url));
        let (posted, got) = within(async { tokio::join!(posted, receiver.answer(OK)) }).await;
        posted.unwrap();
        assert!(got.contains(&format!("host: hook.example:{}\r\n", receiver.port())), "{got}");
        assert_eq!(lookups(&poster), n);
    }
}

#[tokio::test]
async fn slow_names_of_one_key_are_in_nobodys_way() {
    let receiver = Receiver::start().await;
    let url = format!("http://hook.example:{}/", receiver.port());
    let poster = poster(true, &[("hook.example", &["127.0.0.1"])]);
    let mut slow = Vec::new();
    for _ in 0..WEBHOOK_LOOKUPS_PER_KEY {
        slow.push(poster.lookups.take(A).await);
    }
    let mut waits = poster.post(delivery(&url));
    assert!((&mut waits).now_or_never().is_none(), "it waits, and has not failed");
    let posted = poster.post(Delivery { owner: B, ..delivery(&url) });
    within(async { tokio::join!(posted, receiver.answer(OK)) }).await.0.unwrap();
    let by_address = poster.post(delivery(&receiver.url()));
    within(async { tokio::join!(by_address, receiver.answer(OK)) }).await.0.unwrap();
    drop(slow);
    within(async { tokio::join!(waits, receiver.answer(OK)) }).await.0.unwrap();

    let strict = self::poster(false, &[("public.example", &["8.8.8.8"])]);
    let target = Target::parse("http://public.example/").unwrap();
    let slow = strict.checks.take(A).await;
    assert!(strict.check(A, &target).now_or_never().is_none(), "one of a key at once");
    within(strict.check(B, &target)).await.unwrap();
    drop(slow);
    within(strict.check(A, &target)).await.unwrap();
}

#[tokio::test]
async fn tls_proves_the_host() {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut receiver = Receiver::start().await;
    receiver.tls = Some(TlsAcceptor::from(Arc::new(config)));
    let here: &[&str] = &["127.0.0.1"];
    let table = [("hook.example", here), ("other.example", here)];
    let (trusting, doubting) = (poster(true, &table), poster(true, &table));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    assert!(trusting.tls.set(super::trusting(roots)).is_ok());

    let check = async |poster: &Poster, host: &str| {
        let posted = poster.post(delivery(&format!("https://{host}:{}/hook", receiver.port())));
        within(async { tokio::join!(posted, receiver.answer(OK)) }).await
    };
    for host in ["hook.example", "127.0.0.1"] {
        let (posted, got) = check(&trusting, host).await;
        posted.unwrap();
        assert!(got.starts_with("POST /hook HTTP/1.1\r\n"), "{got}");
    }
    for (poster, host) in [(&trusting, "other.example"), (&doubting, "hook.example")] {
        let (posted, got) = check(poster, host).await;
        // Where the system has no roots at all, nobody is believed either.
        let failed = posted.unwrap_err();
        assert!(matches!(failed, PostError::Tls(_) | PostError::NoRoots), "{failed}");
        assert_eq!(got, "", "nothing was said to a host that is another");
    }
}
