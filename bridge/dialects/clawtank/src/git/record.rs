//! What clients say of a repository: four types, as tables, and as messages.

use mesh::name::id::MessageId;
use serde_json::{Map, Value, json};

use crate::{
    fields::At,
    ids::{self, Form},
    limits::GIT_BYTES_MAX,
    names,
    problem::Problem,
    shape::{Field, Rule, may, must, read},
};

/// The types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit,
    Opened,
    Reviewed,
    Merged,
}

const KINDS: [Kind; 4] = [Kind::Commit, Kind::Opened, Kind::Reviewed, Kind::Merged];

impl Kind {
    /// Its type, and the kind of its message.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Commit => "git.commit",
            Kind::Opened => "git.pr_opened",
            Kind::Reviewed => "git.pr_reviewed",
            Kind::Merged => "git.pr_merged",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }

    fn fields(self) -> &'static [Field] {
        match self {
            Kind::Commit => COMMIT,
            Kind::Opened => OPENED,
            Kind::Reviewed => REVIEWED,
            Kind::Merged => MERGED,
        }
    }
}

/// Entries of a list: more than a frame has room for.
const MANY: usize = 65_536;
/// Short words, and names.
const WORD: Rule = Rule::Text(128);
const NAME: Rule = Rule::Text(100);
/// Texts that people write.
const PROSE: Rule = Rule::Text(16_384);
const FILES: Rule = Rule::Texts(MANY, 4_096);
/// Branches may be named by short ones, and by those of newer repositories.
const SHA: Rule = Rule::Hex(7, 64);

const USER: &[Field] = &[
    may("user_id", Rule::Id("user")),
    may("display_name", NAME),
    may("type", Rule::OneOf(&["human", "agent", "system"])),
];

const COMMIT: &[Field] = &[
    must(
        "commit_info",
        Rule::Fields(&[
            must("sha", Rule::Hex(40, 40)),
            may("short_sha", Rule::Hex(7, 7)),
            must("message", Rule::Words(2_000)),
            must("branch", Rule::Words(200)),
            must(
                "author",
                Rule::Fields(&[
                    must("name", Rule::Words(100)),
                    must("email", Rule::Email),
                    must("timestamp", Rule::Time),
                ]),
            ),
        ]),
    ),
    must(
        "repository",
        Rule::Fields(&[must("url", Rule::Uri), must("owner", NAME), must("name", NAME)]),
    ),
    must(
        "changes",
        Rule::Fields(&[
            must("files_added", FILES),
            must("files_modified", FILES),
            must("files_deleted", FILES),
            must(
                "stats",
                Rule::Fields(&[
                    must("additions", Rule::Whole),
                    must("deletions", Rule::Whole),
                    must("total_changes", Rule::Whole),
                ]),
            ),
        ]),
    ),
    may(
        "context",
        Rule::Fields(&[
            may("task_id", Rule::Id("task")),
            may("agent_id", WORD),
            may("commit_type", WORD),
            may("related_issues", Rule::Texts(64, 256)),
        ]),
    ),
    may("truncated", Rule::Flag),
];

/// The request that is meant, as all three types name it.
const PULL: &[Field] = &[
    may("id", WORD),
    must("number", Rule::Whole),
    must("title", Rule::Words(500)),
    must("url", Rule::Uri),
    may("description", PROSE),
    may("state", WORD),
    may("draft", Rule::Flag),
    may("mergeable", Rule::Flag),
];

const BRANCH: &[Field] = &[must("name", Rule::Words(200)), may("sha", SHA)];

const OPENED: &[Field] = &[
    must("pull_request", Rule::Fields(PULL)),
    must(
        "branch_info",
        Rule::Fields(&[must("head", Rule::Fields(BRANCH)), must("base", Rule::Fields(BRANCH))]),
    ),
    may(
        "author",
        Rule::Fields(&[
            may("type", WORD),
            may("agent_id", WORD),
            may("human_owner", Rule::Fields(USER)),
        ]),
    ),
    may(
        "context",
        Rule::Fields(&[
            may("task_id", Rule::Id("task")),
            may("agent_id", WORD),
            may("related_tasks", Rule::Texts(64, 128)),
            may("completion_type", WORD),
        ]),
    ),
    may(
        "review_info",
        Rule::Fields(&[
            may("reviewers_requested", Rule::Texts(64, 256)),
            may("assignees", Rule::Texts(64, 256)),
            may("labels", Rule::Texts(64, 256)),
            may("review_required", Rule::Flag),
        ]),
    ),
    may(
        "changes_summary",
        Rule::Fields(&[
            may("files_changed", Rule::Whole),
            may("additions", Rule::Whole),
            may("deletions", Rule::Whole),
            may("commits", Rule::Whole),
        ]),
    ),
];

const REVIEWED: &[Field] = &[
    must("pull_request", Rule::Fields(PULL)),
    must(
        "review",
        Rule::Fields(&[
            may("id", WORD),
            must("reviewer", Rule::Fields(USER)),
            must("state", Rule::OneOf(&["approved", "changes_requested", "commented"])),
            may("submitted_at", Rule::Time),
        ]),
    ),
    may(
        "feedback",
        Rule::Fields(&[
            may("overall_comment", PROSE),
            may(
                "line_comments",
                Rule::List(
                    MANY,
                    &[
                        may("file", Rule::Text(4_096)),
                        may("line", Rule::Whole),
                        may("comment", PROSE),
                        may("suggestion", PROSE),
                    ],
                ),
            ),
            may("suggestions", Rule::Texts(MANY, 16_384)),
        ]),
    ),
    may(
        "context",
        Rule::Fields(&[
            may("task_id", Rule::Id("task")),
            may("agent_id", WORD),
            may("review_type", WORD),
        ]),
    ),
];

const MERGED: &[Field] = &[
    must("pull_request", Rule::Fields(PULL)),
    must(
        "merge_info",
        Rule::Fields(&[
            may("merged_by", Rule::Fields(USER)),
            may("merged_at", Rule::Time),
            may("merge_commit_sha", SHA),
            may("merge_method", WORD),
        ]),
    ),
    must(
        "final_state",
        Rule::Fields(&[
            must("base_branch", Rule::Words(200)),
            may("total_commits", Rule::Whole),
            may("files_changed", Rule::Whole),
            may("additions", Rule::Whole),
            may("deletions", Rule::Whole),
        ]),
    ),
    may(
        "context",
        Rule::Fields(&[
            may("task_id", Rule::Id("task")),
            may("agent_id", WORD),
            may("completion_confirmed", Rule::Flag),
        ]),
    ),
    may(
        "impact",
        Rule::Fields(&[
            may("feature_complete", Rule::Flag),
            may("tests_passing", Rule::Flag),
            may("deployment_ready", Rule::Flag),
        ]),
    ),
];

/// Where lists of files are, which are cut if a commit has too many.
const LISTS: [&str; 3] = ["files_added", "files_modified", "files_deleted"];

/// Something that happened in a repository, as somebody says.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// All known fields, each as its rule has it.
    pub(crate) data: Value,
}

impl Record {
    /// As a client says it.
    pub(crate) fn of(kind: Kind, data: &At<'_>) -> Result<Record, Problem> {
        Ok(Record { kind, data: Value::Object(read(data, kind.fields(), None)?) })
    }

    /// As the metadata of a message of this author has it. `None`: it is none, whatever it says.
    pub(crate) fn kept(metadata: Option<&str>, by: &str, form: Option<Form>) -> Option<Record> {
        // Most messages say nothing of the kind, and are not read.
        let text = metadata.filter(|json| json.contains("git."))?;
        let value: Value = serde_json::from_str(text).ok()?;
        let kind = Kind::named(value["kind"].as_str()?)?;
        let data = read(&At::new("git", &value["git"]), kind.fields(), form).ok()?;
        let mut record = Record { kind, data: Value::Object(data) };
        if names::user_of(by).is_none() {
            // Another node may have let through what is said in the name of another agent.
            record.is_by(by);
        }
        Some(record)
    }

    /// Back.
    pub(crate) fn metadata(&self) -> String {
        json!({"kind": self.kind.name(), "git": self.data}).to_string()
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.data.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    fn whole(&self, path: &str) -> u64 {
        self.data.pointer(path).and_then(Value::as_u64).unwrap_or_default()
    }

    /// The agent whose work it is, if it is named.
    pub(crate) fn agent(&self) -> Option<&str> {
        let text = |path: &str| self.data.pointer(path).and_then(Value::as_str);
        text("/context/agent_id").or_else(|| text("/author/agent_id"))
    }

    /// Names the agent that has done it, where its type has a place for that.
    pub(crate) fn is_by(&mut self, agent: &str) {
        let Some(data) = self.data.as_object_mut() else { return };
        let mut name = |place: &str| {
            let place = data.entry(place).or_insert_with(|| Value::Object(Map::new()));
            place["agent_id"] = json!(agent);
        };
        match self.kind {
            Kind::Commit => name("context"),
            Kind::Opened => {
                name("context");
                name("author");
            }
            // There it is the one whose work was looked at.
            Kind::Reviewed | Kind::Merged => {}
        }
    }

    /// The task that it is for.
    pub(crate) fn task(&self) -> Option<MessageId> {
        ids::parse_any(self.text("/context/task_id")).map(MessageId)
    }

    /// The files of a commit.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, bool)> {
        LISTS.into_iter().flat_map(|list| {
            let files = self.data["changes"][list].as_array().map_or(&[][..], Vec::as_slice);
            files.iter().filter_map(move |file| Some((file.as_str()?, list == "files_deleted")))
        })
    }

    /// Within the bound of what is kept of one: of a commit the longest lists are cut.
    pub(crate) fn fitting(mut self) -> Result<Record, Problem> {
        loop {
            let bytes = self.data.to_string().len();
            if bytes <= GIT_BYTES_MAX {
                return Ok(self);
            }
            let longest = match self.kind {
                Kind::Commit => LISTS.into_iter().max_by_key(|list| self.count(list)),
                Kind::Opened | Kind::Reviewed | Kind::Merged => None,
            };
            let Some(list) = longest.filter(|list| self.count(list) > 0) else {
                return Err(Problem::field("data", format!("at most {GIT_BYTES_MAX} bytes")));
            };
            // Of a list that is a little too long some go, of one that is much too long most.
            let over = (bytes - GIT_BYTES_MAX) * self.count(list) / bytes;
            let left = self.count(list) - over.max(1);
            if let Some(files) = self.data["changes"][list].as_array_mut() {
                files.truncate(left);
            }
            self.data["truncated"] = json!(true);
        }
    }

    fn count(&self, list: &str) -> usize {
        self.data["changes"][list].as_array().map_or(0, Vec::len)
    }

    /// The line of its message, which is read in all dialects.
    pub(crate) fn line(&self) -> String {
        let number = || self.whole("/pull_request/number");
        match self.kind {
            Kind::Commit => {
                let sha = self.text("/commit_info/sha");
                let (branch, by) =
                    (self.text("/commit_info/branch"), self.text("/commit_info/author/name"));
                let (more, less) = (
                    self.whole("/changes/stats/additions"),
                    self.whole("/changes/stats/deletions"),
                );
                let files: usize = LISTS.iter().map(|list| self.count(list)).sum();
                let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
                let short = &sha[..sha.len().min(7)];
                let (branch, by) = (first(branch), first(by));
                let text = first(self.text("/commit_info/message"));
                format!(
                    "[git] commit {short} on {branch} by {by}: {text} (+{more} -{less}, {files})"
                )
            }
            Kind::Opened => {
                let title = first(self.text("/pull_request/title"));
                format!("[git] pull request #{} opened: {title}", number())
            }
            Kind::Reviewed => {
                let by = first(self.text("/review/reviewer/display_name"));
                let by = if by.is_empty() { "somebody" } else { by };
                let state = self.text("/review/state");
                format!("[git] pull request #{} reviewed ({state}) by {by}", number())
            }
            Kind::Merged => {
                let base = first(self.text("/final_state/base_branch"));
                format!("[git] pull request #{} merged into {base}", number())
            }
        }
    }
}

/// The first line of a text.
pub(crate) fn first(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default().trim_end()
}

/// A repository, by its address: with or without what clones add to it.
pub(crate) fn repository(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url)
}
