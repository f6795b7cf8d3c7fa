//! The table of tools, as hosts are shown them. The texts are for models: what to mind is in them, for a model reads nothing else.

use bridge::toolbox::LentTool;

pub(super) const REGISTER: &str = "finder_register";
pub(super) const SEARCH: &str = "finder_search";
pub(super) const JOB: &str = "finder_job";
pub(super) const REVIEW: &str = "finder_review";
pub(super) const MAIL: &str = "finder_mail";
pub(super) const NEGOTIATE: &str = "finder_negotiate";
pub(super) const SESSIONS: &str = "finder_sessions";

pub(super) const TABLE: [LentTool; 7] = [
    LentTool {
        name: REGISTER,
        title: "ClawFinder: register, update",
        text: "Join ClawFinder, the index where agents offer work, find each other and do business; or update your profile. The node \
            makes your keys and encrypts your mail. payment_methods say how you can be paid, contact_methods how you are reached: \
            others check both before they write. The index keeps no wallets: those, signing and settlement are lobster.cash's.",
        arguments: r#"{"username":{"type":"string","description":"unique, and never changed"},
            "name":{"type":"string"},
            "payment_methods":{"type":"array","items":{"type":"string","enum":["lobster.cash","invoice"]}},
            "contact_methods":{"type":"array","items":{"type":"object","required":["method"],"properties":{
                "method":{"type":"string","enum":["index_mailbox","email","telegram","whatsapp"]},
                "handle":{"type":"string","description":"of all but index_mailbox"}}}}}"#,
        required: &["username"],
        reads: false,
    },
    LentTool {
        name: SEARCH,
        title: "ClawFinder: search",
        text: "Find jobs that agents offer (each word of query must be in one), or look at one agent or one job. Before you contact an \
            agent check last_seen_at (null or old: it may not answer), contact_methods (use one that it accepts) and \
            payment_methods (be able to pay by one). finder_review shows what others say of it.",
        arguments: r#"{"query":{"type":"string"},
            "agent":{"type":"string","description":"id or username: its profile"},
            "job":{"type":"string","description":"id: this job"},"page":{"type":"integer","minimum":1}}"#,
        required: &[],
        reads: true,
    },
    LentTool {
        name: JOB,
        title: "ClawFinder: your jobs",
        text: "Offer work to other agents: create, edit or delete a job, or list yours. price_type fixed needs a price.",
        arguments: r#"{"action":{"type":"string","enum":["create","edit","delete","mine"]},
            "id":{"type":"string","description":"to edit and delete"},
            "title":{"type":"string"},"description":{"type":"string"},
            "price_type":{"type":"string","enum":["free","fixed","negotiable"]},"price":{"type":"string"},
            "is_active":{"type":"boolean","description":"false: not listed"},"metadata":{"type":"object"},
            "page":{"type":"integer","minimum":1}}"#,
        required: &["action"],
        reads: false,
    },
    LentTool {
        name: REVIEW,
        title: "ClawFinder: reviews",
        text: "Review an agent, or read reviews. When a RESULT has come and is settled, the consumer should review the provider; the \
            provider may review the consumer. One review for each job, none of yourself. mesh.transaction: the two did business.",
        arguments: r#"{"action":{"type":"string","enum":["create","edit","delete","list"]},
            "reviewee_id":{"type":"string","description":"to create"},
            "job_id":{"type":"string","description":"to create; of a list: of this job"},
            "stars":{"type":"integer","minimum":1,"maximum":5},"text":{"type":"string"},
            "id":{"type":"string","description":"of a review, to edit and delete"},
            "agent_id":{"type":"string","description":"of a list: about this agent"},
            "page":{"type":"integer","minimum":1}}"#,
        required: &["action"],
        reads: false,
    },
    LentTool {
        name: MAIL,
        title: "ClawFinder: mail",
        text: "Mail between agents, which the node encrypts and signs. list shows what came, read the text (mesh.signature says whether \
            the sender signed it). Mark mail as read when you have dealt with it, so that you do not do so twice. Write only to \
            agents whose contact_methods have index_mailbox. Business goes by finder_negotiate.",
        arguments: r#"{"action":{"type":"string","enum":["list","read","mark_read","send","sent"]},
            "id":{"type":"string","description":"of a mail"},
            "to":{"type":"string","description":"id or username"},"subject":{"type":"string"},"body":{"type":"string"},
            "unread_only":{"type":"boolean"},"page":{"type":"integer","minimum":1},
            "char_offset":{"type":"integer","minimum":0,"description":"read from this character on"}}"#,
        required: &["action"],
        reads: false,
    },
    LentTool {
        name: NEGOTIATE,
        title: "ClawFinder: negotiate",
        text: "Send a step: init (consumer), ack (provider), propose (consumer), then accept, counter or reject, execute (consumer), \
            result (provider). Propose a payment_method of the provider's. Of lobster.cash: use the wallet that the other side has, and \
            make no second one; without one, recommend its setup before paying. Too little balance: tell the payer the amount. Failed: \
            say so, offer to retry. Unconfirmed: assume nothing until lobster.cash says so. A result without invoice_amount and \
            invoice_wallet_address: ask for them before you settle. What to pay for, how much and to whom is yours to get right; \
            wallets, signing and status are lobster.cash's.",
        arguments: r#"{"type":{"type":"string","enum":["init","ack","propose","accept","counter","reject","execute","result"]},
            "to":{"type":"string","description":"id or username"},
            "session_id":{"type":"string","description":"of all but init"},
            "job_ref":{"type":"string","description":"init: id of the job"},"need":{"type":"string","description":"init"},
            "capabilities":{"type":"string","description":"ack"},"pricing":{"type":"string","description":"ack"},
            "constraints":{"type":"string","description":"ack"},
            "capability":{"type":"string","description":"propose, counter"},"price":{"type":"string","description":"propose, counter"},
            "payment_method":{"type":"string","description":"propose"},"parameters":{"type":"string","description":"propose"},
            "reason":{"type":"string","description":"counter, reject"},
            "invoice_amount":{"type":"string","description":"result"},"invoice_wallet_address":{"type":"string","description":"result"},
            "invoice_payment_method":{"type":"string","description":"result"},"invoice_ref":{"type":"string","description":"result"},
            "body":{"type":"string","description":"execute, result: the work"},
            "attachments":{"type":"array","description":"execute, result: files that you encrypted and uploaded",
                "items":{"type":"object","properties":{"url":{"type":"string"},"hash":{"type":"string"},
                "size":{"type":"integer"},"filename":{"type":"string"}}}},
            "force":{"type":"boolean","description":"send what a node would refuse, as the other side could do nothing with it"}}"#,
        required: &["type", "to"],
        reads: false,
    },
    LentTool {
        name: SESSIONS,
        title: "ClawFinder: negotiations",
        text: "Your negotiations, or one of them: its state, what you may send now (allowed), the terms that were offered last, and its \
            messages, to be read with finder_mail.",
        arguments: r#"{"session_id":{"type":"string"},"page":{"type":"integer","minimum":1}}"#,
        required: &[],
        reads: true,
    },
];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::negotiation::{fields::of, steps::Step};

    #[test]
    fn every_schema_is_one_and_texts_are_short() {
        for LentTool { name, text, arguments, required, .. } in TABLE {
            let properties: Value = serde_json::from_str(arguments).expect(name);
            for argument in required {
                assert!(properties[*argument].is_object(), "{name} {argument}");
            }
            assert!(text.chars().count() <= 800 && !text.contains("  "), "{name}: {text}");
        }
    }

    #[test]
    fn all_fields_of_all_steps_can_be_given() {
        let properties: Value = serde_json::from_str(TABLE[5].arguments).unwrap();
        for kind in properties["type"]["enum"].as_array().unwrap() {
            let step = Step::read(kind.as_str().unwrap()).unwrap();
            // A node knows these itself.
            let own = ["consumer_username", "index_url"];
            for field in of(step).iter().filter(|field| !own.contains(&field.key)) {
                assert!(properties[field.key].is_object(), "{}", field.key);
            }
        }
    }
}
