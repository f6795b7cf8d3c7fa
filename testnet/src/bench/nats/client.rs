//! A client of NATS, as far as it is measured: <https://docs.nats.io/reference/reference-protocols/nats-protocol>.

use std::io::Write as _;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use crate::bench::connection::{Incoming, SILENT, Said, Speaker};

/// Read at once.
const READ_BYTES: usize = 64 << 10;
/// Subjects of acknowledgements and answers begin with it, and end with the number of their request.
const INBOX: &str = "_INBOX.bench";
/// Where streams are heard. A message comes with the subject that it was sent to, so that only the subscription tells it apart.
const EAR: &str = "_EAR.bench";
/// The subscription to that.
const HEARING: &str = "2";

/// See the module.
#[derive(Debug)]
pub(in crate::bench) struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    line: Vec<u8>,
    body: Vec<u8>,
    out: Vec<u8>,
    /// Of this client alone.
    mark: String,
    requests: u64,
}

impl Client {
    /// `mark` is of this client alone, in the whole cluster.
    pub(super) async fn connect(address: &str, mark: String) -> Result<Client> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("no NATS server answers at {address}"))?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let reader = BufReader::with_capacity(READ_BYTES, reader);
        let (line, body) = (Vec::new(), Vec::new());
        let out = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false}}\r\nSUB {INBOX}.{mark}.* 1\r\n\
             SUB {EAR}.{mark} {HEARING}\r\n"
        );
        let out = out.into_bytes();
        let mut client = Client { reader, writer, line, body, out, mark, requests: 0 };
        client.flush().await?;
        Ok(client)
    }

    /// Where messages of a stream are sent to.
    pub(super) fn ear(&self) -> String {
        format!("{EAR}.{}", self.mark)
    }

    /// The answer of the server's own interface.
    pub(super) async fn call(&mut self, subject: &str, asked: &Value) -> Result<Value> {
        let number = self.publish(subject, asked.to_string().as_bytes());
        self.flush().await?;
        loop {
            if self.next().await?.is_some_and(|(_, answers)| answers == Some(number)) {
                let answer: Value = serde_json::from_slice(&self.body)?;
                let error = &answer["error"];
                ensure!(error.is_null(), "{subject} is refused: {error}");
                return Ok(answer);
            }
        }
    }

    fn publish(&mut self, subject: &str, body: &[u8]) -> u64 {
        self.requests += 1;
        let (mark, number, bytes) = (&self.mark, self.requests, body.len());
        // Writing to a Vec cannot fail.
        let _ = write!(self.out, "PUB {subject} {INBOX}.{mark}.{number} {bytes}\r\n");
        self.out.extend_from_slice(body);
        self.out.extend_from_slice(b"\r\n");
        number
    }

    /// The next message, its body in `self.body`: whether it was heard of a stream, and the request that it answers. `None`:
    /// something else came.
    async fn next(&mut self) -> Result<Option<(bool, Option<u64>)>> {
        self.line.clear();
        let read = timeout(SILENT, self.reader.read_until(b'\n', &mut self.line)).await;
        let read = read.with_context(|| format!("nothing comes for {SILENT:?}"))?;
        ensure!(read.context("the connection broke")? > 0, "the NATS server hung up");
        let line = std::str::from_utf8(&self.line)?.trim_end();
        match line.split(' ').next() {
            // MSG SUBJECT SUBSCRIPTION [REPLY-TO] BYTES
            Some("MSG") => {}
            Some("PING") => {
                self.out.extend_from_slice(b"PONG\r\n");
                self.flush().await?;
                return Ok(None);
            }
            Some("-ERR") => bail!("the NATS server says {line}"),
            _ => return Ok(None),
        }
        let mut parts = line.split(' ').skip(1);
        let last = parts.next().and_then(|subject| subject.rsplit('.').next());
        let heard = parts.next() == Some(HEARING);
        let answers = last.filter(|_| !heard).and_then(|last| last.parse().ok());
        let bytes = line.rsplit(' ').next().and_then(|bytes| bytes.parse().ok());
        let bytes: usize = bytes.context("a message without a length")?;
        self.body.resize(bytes + 2, 0);
        self.reader.read_exact(&mut self.body).await.context("the connection broke")?;
        self.body.truncate(bytes);
        Ok(Some((heard, answers)))
    }
}

impl Speaker for Client {
    fn say(&mut self, subject: &str, said: Said) -> u64 {
        self.publish(subject, said.content().as_bytes())
    }

    async fn flush(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            self.writer.write_all(&self.out).await.context("the NATS server hung up")?;
            self.out.clear();
        }
        Ok(())
    }

    async fn incoming(&mut self) -> Result<Incoming> {
        let Some((heard, answers)) = self.next().await? else { return Ok(Incoming::Other) };
        let body = std::str::from_utf8(&self.body)?;
        if heard {
            return Ok(Said::parse(body).map_or(Incoming::Other, Incoming::Said));
        }
        ensure!(!body.contains("\"error\""), "a message is refused: {body}");
        Ok(answers.map_or(Incoming::Other, Incoming::Ok))
    }

    fn has_more(&self) -> bool {
        // At least the whole line of a message.
        self.reader.buffer().contains(&b'\n')
    }
}
