//! The other end of the control socket: a command asks the node that runs.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
};

use anyhow::{Context, Result, bail};
use protocol::operator::{Answer, Request};
use store::Progress;

use crate::{
    files::{DataDir, RunFile},
    limits::{CONTROL_ANSWER_BYTES_MAX, CONTROL_TIMEOUT},
};

/// Asks the node that runs on `dir`; `None`: none does.
pub(crate) fn ask(dir: &DataDir, request: Request) -> Result<Option<(RunFile, Answer)>> {
    ask_long(dir, request, &mut |_| ())
}

/// The same for a request that may take long, as long as the node says how far it is.
pub(crate) fn ask_long(
    dir: &DataDir,
    request: Request,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<(RunFile, Answer)>> {
    // A node that had no room for the file has its socket here.
    let unsaid = || RunFile {
        control: dir.control_socket(),
        key_file: None,
        socket: None,
        tcp: None,
        http: None,
    };
    let run = dir.run()?.unwrap_or_else(unsaid);
    // Killed, or just stopping.
    let Ok(mut socket) = UnixStream::connect(&run.control) else { return Ok(None) };
    let mut exchange = || -> Result<Answer> {
        socket.set_read_timeout(Some(CONTROL_TIMEOUT))?;
        socket.set_write_timeout(Some(CONTROL_TIMEOUT))?;
        writeln!(socket, "{}", serde_json::to_string(&request)?)?;
        let mut answers = BufReader::new(&socket);
        loop {
            let mut line = String::new();
            answers.by_ref().take(CONTROL_ANSWER_BYTES_MAX).read_line(&mut line)?;
            let answer = serde_json::from_str(&line)?;
            let Answer::Progress { rows, of } = answer else { return Ok(answer) };
            progress(Progress { rows, of });
        }
    };
    let answer = exchange().context("the running node does not answer")?;
    if let Answer::Error(why) = answer {
        bail!(why);
    }
    Ok(Some((run, answer)))
}
