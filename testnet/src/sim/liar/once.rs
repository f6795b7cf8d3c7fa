//! Lies about things that one agent does.

use mesh::wire::once::{OnceAct, OnceAnswer, OnceAsked, OnceGrant, OnceVerdict, OnceWish};

use super::Liar;

impl Liar {
    pub(super) fn once(&mut self) -> OnceAct {
        let subject = match self.dice.within(0, 3) {
            0 => self.text(),
            1 => "backup".to_owned(),
            _ => "deploy".to_owned(),
        };
        let (by, era) = (self.agent(), self.era());
        if self.dice.chance(50) {
            let wish = match self.dice.within(0, 3) {
                0 => OnceWish::Renew(self.place()),
                1 => OnceWish::Release(self.place()),
                2 => OnceWish::Take(Some(self.some_u64())),
                _ => OnceWish::Take(None),
            };
            return OnceAct::Asked(OnceAsked { subject, by, wish, era, key: self.some_key() });
        }
        let over = (0..self.dice.within(0, 3)).map(|_| self.place()).collect();
        let verdict = match self.dice.within(0, 4) {
            0 => OnceVerdict::Renewed(self.place()),
            1 => OnceVerdict::Released(self.place()),
            2 => OnceVerdict::Held,
            _ => OnceVerdict::Granted(OnceGrant {
                subject,
                by,
                lease_ms: self.dice.chance(50).then(|| self.some_u64()),
                over,
                key: self.some_key(),
            }),
        };
        let (asked, by) = (self.place(), self.founding());
        OnceAct::Answered(OnceAnswer { era, asked, verdict, by })
    }
}
