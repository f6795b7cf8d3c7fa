//! The words of the demonstration, and their pace.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A pause, long enough to read a line: all of them make the demonstration some 90 s long.
const BEAT: Duration = Duration::from_millis(1_300);
/// A title is as wide as a terminal mostly is.
const TITLE_CHARS: usize = 78;

/// Tells what happens.
pub(super) struct Teller<'a> {
    began: Instant,
    scale: f64,
    tell: &'a mut dyn FnMut(&str),
}

impl<'a> Teller<'a> {
    pub(super) fn new(scale: f64, tell: &'a mut dyn FnMut(&str)) -> Teller<'a> {
        Teller { began: Instant::now(), scale, tell }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// A new scene.
    pub(super) async fn scene(&mut self, title: &str) {
        self.beat().await;
        let line = "─".repeat(TITLE_CHARS.saturating_sub(title.chars().count() + 4));
        (self.tell)("");
        (self.tell)(&format!("── {title} {line}"));
        self.beat().await;
    }

    /// Something that happened now, and a pause to read it.
    pub(super) async fn line(&mut self, text: &str) {
        let at = self.began.elapsed().as_secs();
        (self.tell)(&format!("{:02}:{:02}  {text}", at / 60, at % 60));
        self.beat().await;
    }

    /// More of the line before.
    pub(super) fn more(&mut self, text: &str) {
        (self.tell)(&format!("       {text}"));
    }

    async fn beat(&self) {
        sleep(BEAT.mul_f64(self.scale)).await;
    }
}
