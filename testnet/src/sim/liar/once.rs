//! Lies about things that one agent does, and about approvals.

use mesh::wire::{
    approval::{
        ApprovalAct, ApprovalAnswer, ApprovalAsked, ApprovalRequested, ApprovalVerdict,
        ApprovalWish,
    },
    entry::Body,
    once::{OnceAct, OnceAnswer, OnceAsked, OnceGrant, OnceVerdict, OnceWish},
};

use super::Liar;

impl Liar {
    pub(super) fn once_or_approval(&mut self) -> Body {
        if self.dice.chance(70) { Body::Once(self.once()) } else { Body::Approval(self.approval()) }
    }

    fn approval(&mut self) -> ApprovalAct {
        let (by, key) = (self.agent(), self.some_key());
        match self.dice.within(0, 2) {
            0 => ApprovalAct::Requested(ApprovalRequested {
                message: self.place(),
                by,
                text: self.text(),
                approvers: (0..self.dice.within(0, 40)).map(|_| self.agent()).collect(),
                until_ms: self.some_u64(),
                key,
            }),
            1 => {
                let wish = match self.dice.within(0, 4) {
                    0 => ApprovalWish::Approve,
                    1 => ApprovalWish::Deny,
                    2 => ApprovalWish::Expire,
                    3 => ApprovalWish::ByRule(self.place()),
                    _ => ApprovalWish::Always,
                };
                let (approval, era) = (self.place(), self.era());
                let reason = self.dice.chance(50).then(|| self.text());
                ApprovalAct::Asked(ApprovalAsked { approval, by, wish, reason, era, key })
            }
            _ => {
                let (era, asked, by) = (self.era(), self.place(), self.founding());
                let verdict = ApprovalVerdict::Granted;
                ApprovalAct::Answered(ApprovalAnswer { era, asked, verdict, by })
            }
        }
    }

    fn once(&mut self) -> OnceAct {
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
