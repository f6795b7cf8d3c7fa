//! The modes of the terminal while lines are edited on it: it is as before whenever and however the program ends.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::mpsc;

/// News of the terminal.
#[derive(Debug)]
pub(crate) enum Input {
    Bytes(Vec<u8>),
    /// The program was stopped and goes on.
    Continued,
    /// Nothing comes any more.
    End,
}

/// Chunks of bytes that wait: while a command runs, keys may be typed ahead.
const CHUNKS_MAX: usize = 16;
const CHUNK_BYTES: usize = 1024;

/// A terminal whose keys come one by one. Dropped, it is as it was.
#[derive(Debug)]
pub(crate) struct Terminal {
    modes: Arc<Modes>,
    inputs: mpsc::Receiver<Input>,
}

#[derive(Debug)]
struct Modes {
    usual: Termios,
    /// Of stdin; set under this lock, so that nothing is set after the last time.
    now: Mutex<Mode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Usual,
    /// Every key is a byte to read.
    Editing,
    /// A command runs: keys wait unseen, but for those that end or stop the program.
    Running,
    /// As usual, for good.
    Ended,
}

impl Terminal {
    /// Its modes are not changed yet.
    pub(crate) fn open() -> io::Result<Terminal> {
        let usual = tcgetattr(io::stdin())?;
        let modes = Arc::new(Modes { usual, now: Mutex::new(Mode::Usual) });
        let (sender, inputs) = mpsc::channel(CHUNKS_MAX);
        let mut signals = Signals::new([SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
        let (theirs, continued) = (Arc::clone(&modes), sender.clone());
        // These threads end with the process.
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if signal == SIGCONT {
                    // A full queue has keys in it: the line is painted anyway.
                    let _ = continued.try_send(Input::Continued);
                } else {
                    theirs.die_of(signal);
                }
            }
        });
        std::thread::spawn(move || read(&sender));
        Ok(Terminal { modes, inputs })
    }

    /// The next input. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Input {
        self.inputs.recv().await.unwrap_or(Input::End)
    }

    /// Keys are bytes from now on.
    pub(crate) fn edit(&self) -> io::Result<()> {
        if *self.modes.lock() == Mode::Editing { Ok(()) } else { self.resume() }
    }

    /// The same, where others may have changed the modes.
    pub(crate) fn resume(&self) -> io::Result<()> {
        self.modes.set(Mode::Editing)
    }

    /// A command runs from now on, and Ctrl-C ends the program.
    pub(crate) fn run(&self) -> io::Result<()> {
        self.modes.set(Mode::Running)
    }

    /// Stops the program as Ctrl-Z does; [`Input::Continued`] follows when it goes on.
    pub(crate) fn suspend(&self) -> io::Result<()> {
        self.modes.set(Mode::Usual)?;
        Ok(kill_current_process_group(Signal::TSTP)?)
    }

    /// Ends the program as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.end(SIGINT);
    }

    /// Ends the program as Ctrl-\ does.
    pub(crate) fn quit(&self) {
        self.end(SIGQUIT);
    }

    /// The cursor stands below the line already.
    fn end(&self, signal: i32) {
        let _ = self.modes.set(Mode::Ended);
        self.modes.die_of(signal);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // There is nothing to do about a terminal that is gone.
        let _ = self.modes.set(Mode::Ended);
    }
}

impl Modes {
    fn set(&self, mode: Mode) -> io::Result<()> {
        let mut now = self.lock();
        if *now == Mode::Ended {
            return Ok(());
        }
        *now = mode;
        let mut modes = self.usual.clone();
        if matches!(mode, Mode::Editing | Mode::Running) {
            let ours = LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
            modes.local_modes.remove(ours);
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        }
        if mode == Mode::Editing {
            modes.local_modes.remove(LocalModes::ISIG);
        }
        // Keys that were typed ahead stay.
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &modes)?)
    }

    /// Ends the program as this signal does where nobody handles it.
    fn die_of(&self, signal: i32) {
        let editing = *self.lock() == Mode::Editing;
        let _ = self.set(Mode::Ended);
        if editing {
            // Below the line; without the lock of stdout, which a writer may hold.
            let _ = rustix::io::write(rustix::stdio::stdout(), b"\n");
        }
        let _ = emulate_default_handler(signal);
    }

    fn lock(&self) -> MutexGuard<'_, Mode> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands over what is typed, to its end.
fn read(sender: &mpsc::Sender<Input>) {
    let mut stdin = io::stdin().lock();
    let mut bytes = [0; CHUNK_BYTES];
    loop {
        let input = match stdin.read(&mut bytes) {
            Ok(count @ 1..) => Input::Bytes(bytes[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => Input::End,
        };
        let ends = matches!(input, Input::End);
        if sender.blocking_send(input).is_err() || ends {
            return;
        }
    }
}
