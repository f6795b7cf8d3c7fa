//! Conflicts: commits of several agents on several branches that touch the same files.
//!
//! Nothing of it is kept: each node reads the commits from the log of the room. A warning is of two commits, and is of the
//! one that came later, so all nodes that have the same log warn of the same, under the same id, once.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use mesh::name::id::{MessageId, RoomId};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::record::{Kind, Record, repository};
use crate::{
    envelope::Told,
    limits::{
        COMMITS_COMPARED_MAX, COMMITS_KEPT_MAX, COMMITS_WITHIN_MS, FILES_COMPARED_MAX,
        PULLS_KEPT_MAX, WARNINGS_KEPT_MAX, WARNINGS_OF_COMMIT_MAX,
    },
    names,
    newest::Newest,
    style::Style,
};

/// A message about a repository, with what is needed of it.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) message: MessageId,
    pub(super) at_ms: u64,
    /// Its author.
    pub(super) by: &'a str,
    pub(super) record: &'a Record,
}

/// A commit, as far as others are compared with it.
#[derive(Debug)]
struct Commit {
    repository: String,
    branch: String,
    agent: String,
    at_ms: u64,
    task: Option<MessageId>,
    /// Digests of the files, the deleted ones marked: names may be long.
    files: BTreeMap<u64, bool>,
}

/// Two branches in which the same files are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    id: [u8; 16],
    at_ms: u64,
    /// Of one of the two the request to merge it has been granted.
    actual: bool,
    files: Vec<String>,
    has_deleted: bool,
    branches: [String; 2],
    agents: [String; 2],
}

/// The commits of a room, as its log has them up to some number.
#[derive(Debug)]
pub(super) struct Commits {
    room: RoomId,
    newest: VecDeque<Commit>,
    /// Heads of requests to merge, by their addresses, and whether they are merged.
    pulls: Newest<String, (Option<String>, bool)>,
    warned: Newest<[u8; 16], ()>,
    /// Messages of commits, by repository and sha.
    messages: Newest<(String, String), MessageId>,
}

impl Commits {
    pub(super) fn new(room: RoomId) -> Commits {
        Commits {
            room,
            newest: VecDeque::new(),
            pulls: Newest::new(PULLS_KEPT_MAX),
            warned: Newest::new(WARNINGS_KEPT_MAX),
            messages: Newest::new(COMMITS_KEPT_MAX),
        }
    }

    /// The message of a commit that was said before.
    pub(super) fn message(&self, record: &Record) -> Option<MessageId> {
        self.messages.get(&key(record)).copied()
    }

    /// Takes the next message of the room. `finished`: tasks that are over.
    pub(super) fn take(&mut self, seen: &Seen<'_>, finished: &HashSet<MessageId>) -> Vec<Warning> {
        let record = seen.record;
        let url = || record.text("/pull_request/url").to_owned();
        match record.kind {
            Kind::Commit => self.commit(seen, finished),
            Kind::Opened => {
                let head = record.text("/branch_info/head/name").to_owned();
                self.pulls.at(&url(), || (None, false)).0 = Some(head);
                Vec::new()
            }
            Kind::Merged => {
                self.pulls.at(&url(), || (None, false)).1 = true;
                Vec::new()
            }
            Kind::Reviewed => Vec::new(),
        }
    }

    fn commit(&mut self, seen: &Seen<'_>, finished: &HashSet<MessageId>) -> Vec<Warning> {
        let key = key(seen.record);
        if self.messages.get(&key).is_some() {
            return Vec::new();
        }
        self.messages.put(&key, seen.message);
        let files: BTreeMap<&str, bool> = seen.record.files().collect();
        // All nodes look at the same ones of a commit that has too many.
        let files: BTreeMap<&str, bool> = files.into_iter().take(FILES_COMPARED_MAX).collect();
        let commit = Commit {
            repository: key.0,
            branch: seen.record.text("/commit_info/branch").to_owned(),
            agent: seen.record.agent().unwrap_or(seen.by).to_owned(),
            at_ms: seen.at_ms,
            task: seen.record.task(),
            files: files.iter().map(|(file, deleted)| (digest(file), *deleted)).collect(),
        };
        let warnings = self.compared(&commit, &files, finished);
        self.newest.push_back(commit);
        if self.newest.len() > COMMITS_KEPT_MAX {
            self.newest.pop_front();
        }
        warnings
    }

    fn compared(
        &mut self,
        commit: &Commit,
        files: &BTreeMap<&str, bool>,
        finished: &HashSet<MessageId>,
    ) -> Vec<Warning> {
        let is_over = |task: Option<MessageId>| task.is_some_and(|task| finished.contains(&task));
        if is_over(commit.task) {
            return Vec::new();
        }
        let of_it = self.newest.iter().rev().filter(|it| it.repository == commit.repository);
        let differs = |other: &&Commit| {
            other.agent != commit.agent
                && other.branch != commit.branch
                && commit.at_ms.abs_diff(other.at_ms) <= COMMITS_WITHIN_MS
                && !is_over(other.task)
        };
        let others = of_it.take(COMMITS_COMPARED_MAX).filter(differs);
        let found: Vec<Warning> =
            others.filter_map(|other| self.warning(commit, files, other)).collect();
        let mut warnings = Vec::new();
        for warning in found {
            if warnings.len() < WARNINGS_OF_COMMIT_MAX && self.warned.get(&warning.id).is_none() {
                self.warned.put(&warning.id, ());
                warnings.push(warning);
            }
        }
        warnings
    }

    fn warning(
        &self,
        commit: &Commit,
        files: &BTreeMap<&str, bool>,
        other: &Commit,
    ) -> Option<Warning> {
        let common = files.iter().filter_map(|(file, deleted)| {
            let theirs = other.files.get(&digest(file))?;
            Some(((*file).to_owned(), *deleted || *theirs))
        });
        let common: Vec<(String, bool)> = common.collect();
        if common.is_empty() {
            return None;
        }
        let mut sides = [(&commit.branch, &commit.agent), (&other.branch, &other.agent)];
        sides.sort_unstable();
        let [(first, one), (second, another)] = sides;
        let mut parts = vec![
            &b"git.conflict_warning"[..],
            &self.room.0,
            commit.repository.as_bytes(),
            first.as_bytes(),
            second.as_bytes(),
        ];
        parts.extend(common.iter().map(|(file, _)| file.as_bytes()));
        let id = names::event_id(&parts);
        let merged = |branch: &str| self.is_merged(&commit.repository, branch);
        Some(Warning {
            id,
            at_ms: commit.at_ms,
            actual: merged(first) || merged(second),
            has_deleted: common.iter().any(|(_, deleted)| *deleted),
            branches: [first.clone(), second.clone()],
            agents: [one.clone(), another.clone()],
            files: common.into_iter().map(|(file, _)| file).collect(),
        })
    }

    /// Whether a request to merge the branch of the repository was granted.
    fn is_merged(&self, repository: &str, branch: &str) -> bool {
        let is_of =
            |url: &str| url.strip_prefix(repository).is_some_and(|rest| rest.starts_with('/'));
        let mut merged = self.pulls.iter().filter(|(_, (_, merged))| *merged);
        merged.any(|(url, (head, _))| head.as_deref() == Some(branch) && is_of(url))
    }
}

/// What tells a commit from others.
fn key(record: &Record) -> (String, String) {
    let url = repository(record.text("/repository/url")).to_owned();
    (url, record.text("/commit_info/sha").to_owned())
}

fn digest(file: &str) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(file)[..8]);
    u64::from_be_bytes(first)
}

impl Warning {
    fn severity(&self) -> &'static str {
        match self.files.len() {
            _ if self.has_deleted => "high",
            0 | 1 => "low",
            2..=4 => "medium",
            _ => "high",
        }
    }

    pub(crate) fn told(&self, style: Style, room: RoomId) -> Told {
        let [first, second] = &self.branches;
        let count = self.files.len();
        let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let agents: BTreeSet<&String> = self.agents.iter().collect();
        let data: Value = json!({
            "conflict_type": if self.actual { "actual" } else { "potential" },
            "severity": self.severity(),
            "affected_files": self.files,
            "branches": [first, second],
            "agents_affected": agents,
            "conflict_details": {
                "type": "overlapping_changes",
                "description": format!("{first} and {second} both change {files}"),
                "auto_resolvable": false,
                "suggested_resolution": "Agree who changes these files, then rebase the other branch",
            },
            "recommendations": [
                "Pause work on the affected files",
                "Coordinate in the chat of the room",
            ],
        });
        Told::of(self.id, "git.conflict_warning", self.at_ms, data)
            .with("room_id", style.room(room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(sha: u8, branch: &str, agent: &str, files: &[&str]) -> Record {
        let data = json!({
            "commit_info": {
                "sha": format!("{sha:040x}"), "message": "x", "branch": branch,
                "author": {"name": "x", "email": "x@y", "timestamp": "2026-02-17T21:03:00Z"},
            },
            "repository": {"url": "https://h/r.git", "owner": "o", "name": "r"},
            "changes": {
                "files_added": files, "files_modified": [], "files_deleted": [],
                "stats": {"additions": 1, "deletions": 0, "total_changes": 1},
            },
            "context": {"agent_id": agent},
        });
        Record { kind: Kind::Commit, data }
    }

    fn pull(kind: Kind) -> Record {
        let data = json!({
            "pull_request": {"number": 1, "title": "x", "url": "https://h/r/pull/1"},
            "branch_info": {"head": {"name": "a"}, "base": {"name": "main"}},
        });
        Record { kind, data }
    }

    fn all(records: &[Record]) -> Vec<Warning> {
        let mut commits = Commits::new(RoomId([1; 16]));
        let take = |(at, record): (u8, &Record)| {
            let message = MessageId([at; 16]);
            let seen = Seen { message, at_ms: u64::from(at), by: "eve", record };
            commits.take(&seen, &HashSet::new())
        };
        (0..).zip(records).flat_map(take).collect()
    }

    #[test]
    fn a_pair_of_branches_is_warned_of_once_for_the_same_files() {
        let records = [
            commit(1, "a", "ann", &["x", "y"]),
            commit(2, "b", "bob", &["x"]),
            commit(3, "b", "bob", &["x"]),
            commit(4, "b", "bob", &["x", "y"]),
            commit(5, "a", "bob", &["x"]),
            commit(6, "c", "bob", &["x"]),
            commit(6, "d", "eve", &["x"]),
        ];
        let warnings = all(&records);
        let shown: Vec<_> =
            warnings.iter().map(|it| (it.branches.clone(), it.files.len())).collect();
        let pair = |one: &str, other: &str| [one.to_owned(), other.to_owned()];
        assert_eq!(shown, [(pair("a", "b"), 1), (pair("a", "b"), 2), (pair("a", "c"), 1)]);
        assert_eq!((warnings[0].severity(), warnings[1].severity()), ("low", "medium"));
        // In whichever order the two come, the warning is the same one.
        let [one, other, ..] = &records;
        let (there, back) =
            (all(&[one.clone(), other.clone()]), all(&[other.clone(), one.clone()]));
        assert_eq!(there[0].id, back[0].id);
    }

    #[test]
    fn old_commits_and_those_of_finished_tasks_conflict_with_none() {
        let mut first = commit(1, "a", "ann", &["x"]);
        let task = crate::ids::text([9; 16]);
        first.data["context"]["task_id"] = json!(task);
        let second = commit(2, "b", "bob", &["x"]);
        let after = |ms: u64, finished: &HashSet<MessageId>| {
            let mut commits = Commits::new(RoomId([1; 16]));
            for (at_ms, record) in [(0, &first), (ms, &second)] {
                let message = MessageId([1; 16]);
                let seen = Seen { message, at_ms, by: "eve", record };
                let warnings = commits.take(&seen, finished);
                if at_ms > 0 {
                    return warnings.len();
                }
            }
            0
        };
        assert_eq!(after(1, &HashSet::new()), 1);
        assert_eq!(after(COMMITS_WITHIN_MS + 1, &HashSet::new()), 0);
        assert_eq!(after(1, &HashSet::from([MessageId([9; 16])])), 0);
    }

    #[test]
    fn a_branch_that_is_merged_is_an_actual_conflict() {
        let records = [
            pull(Kind::Opened),
            commit(1, "a", "ann", &["x"]),
            commit(2, "b", "bob", &["x"]),
            pull(Kind::Merged),
            commit(3, "c", "bob", &["x"]),
        ];
        let warnings = all(&records);
        assert_eq!(warnings.iter().map(|it| it.actual).collect::<Vec<_>>(), [false, true]);
        let deleted = {
            let mut record = commit(4, "d", "bob", &[]);
            record.data["changes"]["files_deleted"] = json!(["x"]);
            record
        };
        let warnings = all(&[commit(1, "a", "ann", &["x"]), deleted]);
        assert_eq!(warnings[0].severity(), "high");
    }
}
