//! The parameters of a request: the query of its address, and the form that some players send instead.

use form_urlencoded::parse;

/// The decoded parameters of a request, in their order. A repeated name keeps all its values. They may contain credentials
/// and do not print themselves.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Decodes a query. Bytes that are not UTF-8 become the replacement character.
    pub fn parse(text: &str) -> Self {
        Self { pairs: parse(text.as_bytes()).into_owned().collect() }
    }

    /// Takes decoded parameters.
    pub fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self { pairs }
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Returns the parameters of these names, of the query and of a form.
    ///
    /// # Errors
    /// Returns a name that has several values, because nobody knows which one is meant. The same value twice is one.
    pub fn with_form(
        &self,
        form: &[u8],
        names: impl IntoIterator<Item = &'static str>,
    ) -> Result<Self, &'static str> {
        let names: Vec<&'static str> = names.into_iter().collect();
        let mut pairs = Vec::<(String, String)>::new();
        let of_query = self.pairs.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into()));
        for (name, value) in of_query.chain(parse(form)) {
            let Some(name) = names.iter().find(|it| ***it == *name) else { continue };
            match pairs.iter().find(|it| it.0 == *name) {
                None => pairs.push(((*name).to_owned(), value.into_owned())),
                Some((_, before)) if **before == *value => {}
                Some(_) => return Err(name),
            }
        }
        Ok(Self { pairs })
    }

    /// Returns the parameters without those of this name.
    pub fn without(&self, name: &str) -> Self {
        Self { pairs: self.pairs.iter().filter(|it| it.0 != name).cloned().collect() }
    }

    /// Returns the value of a name that occurs exactly once.
    pub fn single(&self, name: &str) -> Option<&str> {
        let mut values = self.pairs.iter().filter(|it| it.0 == name);
        let value = values.next()?;
        values.next().is_none().then_some(value.1.as_str())
    }

    /// Returns the value of a name. Repeated values are joined by commas; empty values are ignored.
    pub fn joined(&self, name: &str) -> Option<String> {
        let values = self.pairs.iter().filter(|it| it.0 == name && !it.1.is_empty()).map(|it| it.1.as_str());
        let values: Vec<&str> = values.collect();
        (!values.is_empty()).then(|| values.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parameters_are_decoded_and_repeated_ones_are_joined() {
        let query = Query::parse("a=1&b=x+y%26&a=2&a=&c=%ff&d");
        assert_eq!(
            (query.joined("a"), query.joined("c")),
            (Some("1,2".to_owned()), Some("\u{fffd}".to_owned()))
        );
        assert_eq!((query.single("b"), query.single("a"), query.single("d")), (Some("x y&"), None, Some("")));
        assert_eq!((query.joined("d"), query.joined("e"), query.single("e")), (None, None, None));
    }

    proptest! {
        #[test]
        fn a_query_and_a_form_of_any_bytes_are_read_without_a_second_value(
            query in "[ab=&%+;\\PC]{0,40}",
            form in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'='), Just(b'&'), any::<u8>()], 0..40),
        ) {
            let sent = Query::parse(&query);
            let all: Vec<_> = sent.pairs().iter().cloned().chain(parse(&form).into_owned()).collect();
            let values = |name: &str| all.iter().filter(|it| it.0 == name).map(|it| &it.1).collect::<BTreeSet<_>>();
            let names = ["a", "b"];
            match sent.with_form(&form, names) {
                Ok(read) => for name in names {
                    prop_assert_eq!(read.single(name), values(name).first().map(|it| it.as_str()));
                    prop_assert!(values(name).len() <= 1);
                },
                Err(name) => prop_assert!(values(name).len() > 1),
            }
        }
    }
}
