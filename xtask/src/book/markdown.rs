//! The contents of a Markdown file, as CommonMark reads it.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A fenced or indented block of code.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The first word of the fence; empty for an indented block.
    pub language: String,
    pub text: String,
    pub line: usize,
}

/// A link or a picture.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    pub to: String,
    pub line: usize,
}

/// The contents of one file.
#[derive(Debug, Default)]
pub struct Document {
    pub blocks: Vec<Block>,
    pub links: Vec<Link>,
    /// Anchors of the headings, as GitHub and mdBook generate them.
    pub anchors: Vec<String>,
}

impl Document {
    /// Parses a file; every text is valid Markdown.
    pub fn parse(text: &str) -> Self {
        let mut document = Self::default();
        let (mut block, mut heading) = (None, None);
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = text[..range.start].matches('\n').count() + 1;
            match event {
                Event::Start(Tag::CodeBlock(kind)) => block = Some(begun(&kind, line)),
                Event::End(TagEnd::CodeBlock) => document.blocks.extend(block.take()),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => document.anchor(heading.take()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let to = dest_url.into_string();
                    document.links.push(Link { to, line });
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(block) = &mut block {
                        block.text.push_str(&words);
                    } else if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                _ => {}
            }
        }
        document
    }

    /// Adds a heading's anchor; a number distinguishes headings of the same text.
    fn anchor(&mut self, heading: Option<String>) {
        let anchor = anchor(&heading.unwrap_or_default());
        let numbered = (1..).map(|n| format!("{anchor}-{n}"));
        let mut wanted = std::iter::once(anchor.clone()).chain(numbered);
        let free = wanted.find(|name| !self.anchors.contains(name));
        self.anchors.extend(free);
    }
}

fn begun(kind: &CodeBlockKind, line: usize) -> Block {
    let words = match kind {
        CodeBlockKind::Fenced(words) => words.as_ref(),
        CodeBlockKind::Indented => "",
    };
    let language = words.split([' ', ',']).next().unwrap_or("").to_owned();
    Block {
        language,
        text: String::new(),
        line,
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests;
