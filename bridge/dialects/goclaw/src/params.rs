//! Parameters of a request, under all their names.

use serde_json::{Map, Value};

use crate::outcome::No;

/// The parameters of one request. Of a field with several names the first one that is there counts, in the order of the
/// specification; `null` is as if it were not there.
#[derive(Debug, Default)]
pub(crate) struct Params(Map<String, Value>);

/// A field, and its other names.
pub(crate) type Names = [&'static str];

pub(crate) const AGENT: &Names = &["agentId", "agent_id", "agent_key"];
pub(crate) const MEMBER: &Names = &["agentId", "agent_id", "agent_key", "agent"];
pub(crate) const SUBJECT: &Names = &["subject", "title"];
pub(crate) const ASSIGNEE: &Names = &["assignTo", "assignee_id", "assigneeId"];
pub(crate) const CONTENT: &Names = &["content", "text"];
pub(crate) const SESSION: &Names = &["sessionKey", "session_key"];
pub(crate) const KEY: &Names = &["key", "sessionKey", "session_key"];
pub(crate) const MESSAGE: &Names = &["message", "text"];
pub(crate) const TEAM: &Names = &["teamId", "team_id"];
pub(crate) const THIS_TEAM: &Names = &["teamId", "team_id", "id"];
pub(crate) const TASK: &Names = &["taskId", "task_id"];
pub(crate) const SENDER: &Names = &["senderId", "sender_id"];

impl Params {
    pub(crate) fn new(fields: Map<String, Value>) -> Params {
        Params(fields)
    }

    /// The value of a field.
    pub(crate) fn get(&self, names: &Names) -> Option<&Value> {
        names.iter().find_map(|name| self.0.get(*name).filter(|value| !value.is_null()))
    }

    /// The value of a field that may be `null`.
    pub(crate) fn present(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All fields but these.
    pub(crate) fn without(&self, names: &Names) -> Map<String, Value> {
        let mut rest = self.0.clone();
        rest.retain(|name, _| !names.contains(&name.as_str()));
        rest
    }

    pub(crate) fn text(&self, names: &Names) -> Result<Option<String>, No> {
        let Some(value) = self.get(names) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| must_be(names, "a string"))?;
        Ok(Some(text.to_owned()))
    }

    /// A text that says something.
    pub(crate) fn filled(&self, names: &Names) -> Result<Option<String>, No> {
        Ok(self.text(names)?.filter(|text| !text.is_empty()))
    }

    pub(crate) fn required(&self, names: &Names) -> Result<String, No> {
        self.filled(names)?.ok_or_else(|| is_required(names))
    }

    pub(crate) fn flag(&self, names: &Names) -> Result<Option<bool>, No> {
        let Some(value) = self.get(names) else { return Ok(None) };
        Ok(Some(value.as_bool().ok_or_else(|| must_be(names, "true or false"))?))
    }

    /// A whole number; one above the most counts as that.
    pub(crate) fn whole(&self, names: &Names, most: u64) -> Result<Option<u64>, No> {
        let Some(value) = self.get(names) else { return Ok(None) };
        let number = value.as_u64().ok_or_else(|| must_be(names, "a whole number"))?;
        Ok(Some(number.min(most)))
    }

    /// How many rows are wanted: at least one.
    pub(crate) fn limit(&self, otherwise: u64, most: u64) -> Result<u64, No> {
        Ok(self.whole(&["limit"], most)?.unwrap_or(otherwise).max(1))
    }

    pub(crate) fn offset(&self) -> Result<u64, No> {
        Ok(self.whole(&["offset"], u64::MAX)?.unwrap_or(0))
    }

    pub(crate) fn object(&self, names: &Names) -> Result<Option<&Map<String, Value>>, No> {
        let Some(value) = self.get(names) else { return Ok(None) };
        Ok(Some(value.as_object().ok_or_else(|| must_be(names, "an object"))?))
    }

    pub(crate) fn list(&self, names: &Names) -> Result<Option<&Vec<Value>>, No> {
        let Some(value) = self.get(names) else { return Ok(None) };
        Ok(Some(value.as_array().ok_or_else(|| must_be(names, "an array"))?))
    }
}

/// The refusal of a field that is of another type. It has the first of its names.
pub(crate) fn must_be(names: &Names, what: &str) -> No {
    No::invalid(format!("{} must be {what}", name(names)))
}

pub(crate) fn is_required(names: &Names) -> No {
    No::invalid(format!("{} is required", name(names)))
}

fn name(names: &Names) -> &'static str {
    names.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(value: Value) -> Params {
        Params::new(value.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn the_first_name_that_is_there_counts_and_a_wrong_type_in_a_later_one_is_ignored() {
        let both = params(json!({"session_key": "b", "sessionKey": "a"}));
        assert_eq!(both.text(SESSION), Ok(Some("a".to_owned())));
        let later = params(json!({"sessionKey": null, "session_key": "b"}));
        assert_eq!(later.text(SESSION), Ok(Some("b".to_owned())));
        let wrong = params(json!({"sessionKey": "a", "session_key": 7}));
        assert_eq!(wrong.text(SESSION), Ok(Some("a".to_owned())));
        let first = params(json!({"session_key": 7}));
        assert_eq!(first.text(SESSION).unwrap_err().message, "sessionKey must be a string");
        assert_eq!(params(json!({})).required(TASK).unwrap_err().message, "taskId is required");
    }
}
