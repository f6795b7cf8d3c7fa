//! HTTP over a connection that stays open: one request after the other.

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// A client that keeps its connection.
#[derive(Debug)]
pub(crate) struct Http {
    io: BufReader<TcpStream>,
}

/// What a request is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Http {
    /// Connects to `HOST:PORT`, also as a URL.
    pub(crate) async fn at(address: &str) -> Result<Http> {
        let at = address.trim_start_matches("http://");
        let io = TcpStream::connect(at).await.with_context(|| format!("connect to {at}"))?;
        io.set_nodelay(true)?;
        Ok(Http { io: BufReader::new(io) })
    }

    /// Asks, and reads the whole answer. `head`: the first line, and headers besides host and length.
    pub(crate) async fn ask(&mut self, head: &str, body: &str) -> Result<Answer> {
        let length = body.len();
        let request =
            format!("{head}\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}");
        self.io.get_mut().write_all(request.as_bytes()).await?;
        let (mut status, mut length) = (None, None);
        loop {
            let mut line = String::new();
            ensure!(self.io.read_line(&mut line).await? > 0, "the node hung up");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = Some(bytes.parse()?);
            } else if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.split(' ').next().map(str::parse).transpose()?;
            }
        }
        let status = status.context("an answer has a status")?;
        // No content has no length.
        let length = if status == 204 { Some(0) } else { length };
        let mut body = vec![0; length.context("an answer has a length")?];
        self.io.read_exact(&mut body).await?;
        Ok(Answer { status, body })
    }
}
