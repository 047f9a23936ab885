//! Derive macros for the framework of routes: they turn the fields of a struct into the table from which bodies and queries
//! are read and the schema is published.
//!
//! - [`View`]: an object in an answer. With `#[resource(new = NewThing, edit = ThingEdit)]` it also generates the body
//!   that creates the object and the body that changes it.
//! - [`Body`]: the body of an action.
//! - [`Query`]: parameters in the query of a URL.
//!
//! Doc comments become the descriptions in the schema. Each entry of `#[field(…)]` calls the method of
//! `route_frame::field::Field` with that name: `chars_max = 255` is `.chars_max(255)`.
//!
//! The generated code names the crates `route-frame` and `server`.

use proc_macro::TokenStream;
use proc_macro2::{Ident, TokenStream as Tokens, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Fields, GenericArgument, Lit, Meta, PathArguments, Token, Type,
};

/// Derives the table of fields of an object in answers.
///
/// The name in the schema is the name of the struct without `View`, unless `#[resource(name = "…")]` sets it.
///
/// A field is read-only unless it is marked:
/// - `edit`: clients may send it;
/// - `required`: clients must send it to create or replace the object;
/// - `write_only`: clients may send it and never get it back. Its type is `WriteOnly<T>`.
///
/// The struct named by `new` has plain types for required fields and `Option` for the others. In the struct named by
/// `edit` every field is an `Option`, which is `None` if the field was not sent. A field that may be `null` has the
/// type `Option<T>` in the view and `Option<Option<T>>` in the bodies.
#[proc_macro_derive(View, attributes(resource, field))]
pub fn view(input: TokenStream) -> TokenStream {
    expand(input, view_tokens)
}

/// Derives the reading of a request body. A field of type `Option<T>` may be left out; all others are required.
///
/// With `#[resource(edit = ThingEdit)]` it also generates a body with the same fields, all of which may be left out.
#[proc_macro_derive(Body, attributes(resource, field))]
pub fn body(input: TokenStream) -> TokenStream {
    expand(input, body_tokens)
}

/// Derives the reading of query parameters. A parameter of type `Option<T>` may be left out or empty; all others are
/// required.
#[proc_macro_derive(Query, attributes(field))]
pub fn query(input: TokenStream) -> TokenStream {
    expand(input, query_tokens)
}

fn expand(input: TokenStream, tokens: fn(&DeriveInput) -> syn::Result<Tokens>) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    tokens(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn view_tokens(input: &DeriveInput) -> syn::Result<Tokens> {
    let options = Options::from_attributes(&input.attrs)?;
    let columns = columns(input)?;
    let (view, visibility, docs) = (&input.ident, &input.vis, docs(&input.attrs));
    let entries = columns.iter().map(|it| it.entry(it.place, &it.written_type(), it.is_required));
    let record = record(&options.schema_name(view), &docs, entries);
    let write_only = columns.iter().filter(|it| it.place == "Write").map(|it| &it.name);

    let sent: Vec<&Column> = columns.iter().filter(|it| it.place != "Read").collect();
    let about = &docs;
    let bodies =
        options.new.iter().map(|new| (new, true)).chain(options.edit.iter().map(|edit| (edit, false)));
    let bodies = bodies.map(|(body, is_new)| {
        let fields = sent.iter().map(|it| {
            let (name, about, written) = (&it.name, &it.docs, it.written_type());
            let sent_type = if is_new && it.is_required { written } else { quote!(Option<#written>) };
            quote!(#[doc = #about] #visibility #name: #sent_type,)
        });
        let default = (!is_new).then(|| quote!(#[derive(Default)]));
        let read = read_body(
            body,
            &quote!(#view::RECORD),
            sent.iter().map(|it| (&it.name, is_new && it.is_required)),
        );
        quote! {
            #[doc = #about]
            #[derive(Clone, Debug)]
            #default
            #visibility struct #body { #(#fields)* }

            #read
        }
    });
    let names: Vec<_> = sent.iter().map(|it| (&it.name, it.is_required)).collect();
    let conversion = options.new.iter().zip(&options.edit).map(|(new, edit)| conversion(new, edit, &names));
    Ok(quote! {
        impl #view {
            #visibility const RECORD: ::route_frame::field::Record = #record;
        }

        impl ::route_frame::value::Shape for #view {
            const KIND: ::route_frame::field::Kind = ::route_frame::field::Kind::Record(&#view::RECORD);
        }

        // The compiler would otherwise report that nothing reads these fields.
        const _: fn(&#view) = |view| { #(let _ = &view.#write_only;)* };

        #(#bodies)*
        #(#conversion)*
    })
}

fn body_tokens(input: &DeriveInput) -> syn::Result<Tokens> {
    let options = Options::from_attributes(&input.attrs)?;
    let columns = columns(input)?;
    let (body, visibility, about) = (&input.ident, &input.vis, docs(&input.attrs));
    let entries = columns.iter().map(|it| it.entry("Write", &it.sent_type(), it.is_plain()));
    let record = record(&options.schema_name(body), &about, entries);
    let read = read_body(body, &quote!(#body::RECORD), columns.iter().map(|it| (&it.name, it.is_plain())));
    let edit = options.edit.iter().map(|edit| {
        let fields = columns.iter().map(|it| {
            let (name, docs, sent_type) = (&it.name, &it.docs, it.sent_type());
            quote!(#[doc = #docs] #visibility #name: Option<#sent_type>,)
        });
        let read = read_body(edit, &quote!(#body::RECORD), columns.iter().map(|it| (&it.name, false)));
        let columns: Vec<_> = columns.iter().map(|it| (&it.name, it.is_plain())).collect();
        let conversion = conversion(body, edit, &columns);
        quote! {
            #[doc = #about]
            #[derive(Clone, Debug, Default)]
            #visibility struct #edit { #(#fields)* }

            #read
            #conversion
        }
    });
    Ok(quote! {
        impl #body {
            #visibility const RECORD: ::route_frame::field::Record = #record;
        }

        #read
        #(#edit)*
    })
}

fn query_tokens(input: &DeriveInput) -> syn::Result<Tokens> {
    let columns = columns(input)?;
    let query = &input.ident;
    let entries = columns.iter().map(|it| it.entry("Query", &it.sent_type(), it.is_plain()));
    let record = record(&query.to_string(), &docs(&input.attrs), entries);
    let read = read_fields(columns.iter().map(|it| (&it.name, it.is_plain())));
    Ok(quote! {
        impl ::route_frame::input::Input for #query {
            fn inputs() -> ::route_frame::input::Inputs {
                const RECORD: ::route_frame::field::Record = #record;
                ::route_frame::input::Inputs::query(&RECORD)
            }

            fn read(
                input: &::route_frame::input::RequestInput,
            ) -> Result<Self, ::server::field_errors::FieldErrors> {
                const RECORD: ::route_frame::field::Record = #record;
                let mut reader = ::route_frame::input::Reader::from_query(&input.query, &RECORD);
                #read
            }
        }
    })
}

/// Implements the conversion of the body that creates an object into the one that changes it. The flag of a field says
/// whether its type is plain in the first one.
fn conversion(new: &Ident, edit: &Ident, fields: &[(&Ident, bool)]) -> Tokens {
    let fields = fields.iter().map(|(name, is_plain)| match is_plain {
        true => quote!(#name: Some(new.#name)),
        false => quote!(#name: new.#name),
    });
    quote! {
        impl From<#new> for #edit {
            fn from(new: #new) -> Self {
                Self { #(#fields),* }
            }
        }
    }
}

/// Returns the value of type `Record`.
fn record(name: &str, about: &str, entries: impl Iterator<Item = Tokens>) -> Tokens {
    quote! {
        ::route_frame::field::Record { name: #name, description: #about, fields: &[#(#entries),*] }
    }
}

/// Implements the reading of a body. The flag of a field says whether its type is plain.
fn read_body<'a>(body: &Ident, record: &Tokens, fields: impl Iterator<Item = (&'a Ident, bool)>) -> Tokens {
    let read = read_fields(fields);
    quote! {
        impl ::route_frame::input::Element for #body {
            const RECORD: &'static ::route_frame::field::Record = &#record;

            fn read_element(
                value: &serde_json::Value,
                is_partial: bool,
            ) -> Result<Self, ::server::field_errors::FieldErrors> {
                let record = <Self as ::route_frame::input::Element>::RECORD;
                let mut reader = ::route_frame::input::Reader::from_body(value, is_partial, record)?;
                #read
            }
        }
    }
}

/// Reads all fields before it returns, so that a refusal names every wrong field.
fn read_fields<'a>(fields: impl Iterator<Item = (&'a Ident, bool)>) -> Tokens {
    let (mut reads, mut moves) = (Vec::new(), Vec::new());
    for (name, is_plain) in fields {
        let text = name.unraw().to_string();
        reads.push(quote!(let #name = reader.take(#text);));
        moves.push(match is_plain {
            true => {
                quote!(#name: ::route_frame::input::required(#text, #name)?)
            }
            false => quote!(#name),
        });
    }
    quote! {
        #(#reads)*
        reader.finish()?;
        Ok(Self { #(#moves),* })
    }
}

/// A field of the struct.
struct Column {
    name: Ident,
    ty: Type,
    docs: String,
    /// Variant of `Place` in a view.
    place: &'static str,
    is_required: bool,
    /// Method calls on `Field`.
    rules: Vec<Tokens>,
}

impl Column {
    /// The entry of the table of fields.
    fn entry(&self, place: &str, ty: &Tokens, is_required: bool) -> Tokens {
        let (name, docs, rules) = (self.name.unraw().to_string(), &self.docs, &self.rules);
        let place = Ident::new(place, self.name.span());
        let required = is_required.then(|| quote!(.required()));
        quote! {
            ::route_frame::field::Field::new::<#ty>(#name, #docs, ::route_frame::field::Place::#place)
                #required #(.#rules)*
        }
    }

    /// The type of the field of a view, as clients send it.
    fn written_type(&self) -> Tokens {
        let ty = &self.ty;
        match (self.place, argument_of(ty, "WriteOnly")) {
            ("Write", Some(inside)) => quote!(#inside),
            _ => quote!(#ty),
        }
    }

    /// The type of the field of a body or a query, as clients send it.
    fn sent_type(&self) -> Tokens {
        let ty = self.inside_option().unwrap_or(&self.ty);
        quote!(#ty)
    }

    /// Whether a body or a query must contain the field.
    fn is_plain(&self) -> bool {
        self.inside_option().is_none()
    }

    fn inside_option(&self) -> Option<&Type> {
        argument_of(&self.ty, "Option")
    }
}

/// The `T` of `Wrapper<T>`.
fn argument_of<'a>(ty: &'a Type, wrapper: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|it| it.ident == wrapper)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inside) => Some(inside),
        _ => None,
    }
}

fn columns(input: &DeriveInput) -> syn::Result<Vec<Column>> {
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            other => return Err(Error::new_spanned(other, "expected named fields")),
        },
        _ => return Err(Error::new_spanned(&input.ident, "expected a struct")),
    };
    fields
        .iter()
        .filter_map(|it| Some((it.ident.clone()?, it)))
        .map(|(name, field)| column(name, field))
        .collect()
}

fn column(name: Ident, field: &syn::Field) -> syn::Result<Column> {
    let docs = docs(&field.attrs);
    if docs.is_empty() {
        return Err(Error::new_spanned(field, "a field needs a doc comment: the schema describes it"));
    }
    let mut column =
        Column { name, ty: field.ty.clone(), docs, place: "Read", is_required: false, rules: Vec::new() };
    for attribute in field.attrs.iter().filter(|it| it.path().is_ident("field")) {
        for Rule { name, argument } in attribute.parse_args_with(rules)? {
            match name.to_string().as_str() {
                "edit" => column.place = "Edit",
                "write_only" => column.place = "Write",
                "required" => {
                    column.place = "Edit";
                    column.is_required = true;
                }
                _ => column.rules.push(quote!(#name(#argument))),
            }
        }
    }
    Ok(column)
}

/// The contents of `#[resource(…)]`.
#[derive(Default)]
struct Options {
    name: Option<String>,
    new: Option<Ident>,
    edit: Option<Ident>,
}

impl Options {
    fn from_attributes(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut options = Options::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("resource")) {
            attribute.parse_nested_meta(|meta| {
                let value = meta.value()?;
                if meta.path.is_ident("name") {
                    options.name = Some(value.parse::<syn::LitStr>()?.value());
                } else if meta.path.is_ident("new") {
                    options.new = Some(value.parse()?);
                } else if meta.path.is_ident("edit") {
                    options.edit = Some(value.parse()?);
                } else {
                    return Err(meta.error("expected `name`, `new` or `edit`"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }

    fn schema_name(&self, ident: &Ident) -> String {
        let ident = ident.to_string();
        self.name.clone().unwrap_or_else(|| ident.strip_suffix("View").unwrap_or(&ident).to_owned())
    }
}

/// One entry of `#[field(…)]`: a word, or a word with an argument.
struct Rule {
    name: Ident,
    argument: Tokens,
}

impl Parse for Rule {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        let mut argument = Tokens::new();
        if input.parse::<Option<Token![=]>>()?.is_some() {
            while !input.is_empty() && !input.peek(Token![,]) {
                argument.extend([input.parse::<TokenTree>()?]);
            }
        }
        Ok(Rule { name, argument })
    }
}

fn rules(input: ParseStream<'_>) -> syn::Result<impl IntoIterator<Item = Rule> + use<>> {
    input.parse_terminated(Rule::parse, Token![,])
}

/// The doc comment as one line.
fn docs(attributes: &[Attribute]) -> String {
    let text = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(text).collect::<Vec<_>>().join(" ").trim().to_owned()
}
