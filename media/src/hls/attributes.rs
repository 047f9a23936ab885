//! The attribute lists of tags, such as `BANDWIDTH=1280000,CODECS="avc1.4d401f,mp4a.40.2"`.

/// Maximum number of attributes of one tag that are read.
const ATTRIBUTES_MAX: usize = 64;

/// The attributes of one tag, in their order.
pub(super) struct AttributeList<'a>(Vec<(&'a str, &'a str)>);

impl<'a> AttributeList<'a> {
    /// Reads a list. Values may be without quotes where the standard demands them, and a quote may be missing at the end.
    pub(super) fn parse(text: &'a str) -> Self {
        let mut found = Vec::new();
        let mut rest = text;
        while found.len() < ATTRIBUTES_MAX {
            rest = rest.trim_start_matches([',', ' ', '\t']);
            let Some((name, after)) = rest.split_once('=') else { break };
            let after = after.trim_start();
            let (value, next) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_at(after.find(',').unwrap_or(after.len())),
            };
            found.push((name.trim(), value.trim()));
            // Anything between a closing quote and the next comma belongs to nothing.
            rest = next.find(',').map_or("", |at| &next[at..]);
        }
        Self(found)
    }

    /// Returns the value of an attribute; `None` if it is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|it| it.0.eq_ignore_ascii_case(name)).map(|it| it.1).filter(|it| !it.is_empty())
    }

    /// Returns the value of an attribute as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        value.parse().ok().or_else(|| {
            let number = value.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0)?;
            // Larger numbers are saturated.
            Some(number as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_whatever_their_quotes_and_spaces_are() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            assert_eq!(AttributeList::parse(text).0, expected, "{text}");
        };
        check("A=1,B=\"x,y=z\",C=3", &[("A", "1"), ("B", "x,y=z"), ("C", "3")]);
        check(" A = 1 , B= \"x\" , ", &[("A", "1"), ("B", "x")]);
        check("A=1,,B=2", &[("A", "1"), ("B", "2")]);
        check("A=\"open,B=2", &[("A", "open,B=2")]);
        check("A=\"x\"rest,B=2", &[("A", "x"), ("B", "2")]);
        check("URI=http://h/k?a=b,IV=0x1", &[("URI", "http://h/k?a=b"), ("IV", "0x1")]);
        check("nothing", &[]);
        check("", &[]);
        assert_eq!(AttributeList::parse("bandwidth=1.5e6").number("BANDWIDTH"), Some(1_500_000));
        assert_eq!(AttributeList::parse("BANDWIDTH=-1").number("BANDWIDTH"), None);
        assert_eq!(AttributeList::parse(&"A=1,".repeat(1_000)).0.len(), ATTRIBUTES_MAX);
    }
}
