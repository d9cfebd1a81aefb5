"""Strings that tokenizers are compared on: texts in many scripts, code, emoji, marks, long runs, random strings.

Everything is deterministic: the same call gives the same strings on every machine.
"""

import random
import unicodedata

# The first sentence of the Universal Declaration of Human Rights and everyday phrases.
TEXTS = {
    "English": "All human beings are born free and equal in dignity and rights. They're endowed with reason; I'd say we've "
    "got 1,234.56 reasons, DON'T you think it's fine?",
    "French": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Qu'est-ce que c'est ? « L'été »",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straße, STRASSE, Maß, größer.",
    "Spanish": "Todos los seres humanos nacen libres e iguales en dignidad y derechos. ¿Cómo estás? ¡Mañana!",
    "Turkish": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İstanbul ısı",
    "Polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Zażółć gęślą jaźń",
    "Czech": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Příliš žluťoučký kůň",
    "Vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. Nguyễn Trường Tộ",
    "Russian": "Все люди рождаются свободными и равными в своём достоинстве и правах. Ёлка, йод, 2024 г.",
    "Ukrainian": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Їжак, ґанок",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Ἐν ἀρχῇ ἦν ὁ λόγος",
    "Armenian": "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։",
    "Georgian": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით. ᲐᲓᲐᲛᲘᲐᲜᲘ",
    "Hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. בְּרֵאשִׁית בָּרָא אֱלֹהִים",
    "Arabic": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. بِسْمِ اللَّهِ ١٢٣٤٥",
    "Persian": "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند. ۱۲۳۴",
    "Urdu": "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। हिन्दी नमस्ते १२३ क़",
    "Bengali": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। ড় ঢ় য় কো",
    "Punjabi": "ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ, ਸ਼ਾਨ ਅਤੇ ਹੱਕਾਂ ਦੇ ਪੱਖੋਂ ਜਨਮ ਤੋਂ ਹੀ ਆਜ਼ਾਦ ਹੈ।",
    "Gujarati": "પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો જન્મથી સ્વતંત્ર અને સમાન હોય છે.",
    "Tamil": "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர். கொ கோ கௌ",
    "Telugu": "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు. ై",
    "Kannada": "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಹುಟ್ಟಿದ್ದಾರೆ. ಕೊ ಕೋ ೀ",
    "Malayalam": "മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും അന്തസ്സോടും സ്വാതന്ത്ര്യത്തോടുംകൂടി ജനിച്ചവരാണ്. കൊ കോ",
    "Sinhala": "සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත. කො කෝ කෞ",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ๑๒๓ น้ำ",
    "Lao": "ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ ສິດທິ ເສລີພາບ ແລະຄວາມສະເໝີພາບເທົ່າທຽມກັນ.",
    "Tibetan": "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང༌། གྷ ཱི ཱུ",
    "Burmese": "လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် လည်းကောင်း၊ ဦ ၁၂၃",
    "Khmer": "មនុស្សទាំងអស់កើតមកមានសេរីភាព និងសមភាពក្នុងផ្នែកសេចក្ដីថ្លៃថ្នូរ និងសិទ្ធិ។ ១២៣",
    "Amharic": "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው። ፩፪፫",
    "Mongolian": "ᠬᠦᠮᠦᠨ ᠪᠦᠷ ᠲᠥᠷᠥᠵᠦ ᠮᠡᠨᠳᠡᠯᠡᠬᠦ ᠡᠷᠬᠡ ᠴᠢᠯᠥᠭᠡ ᠲᠡᠢ",
    "Cherokee": "ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ ᎤᎾᏕᎿ ꭲꭳ",
    "Inuktitut": "ᐃᓅᔪᓕᒫᑦ ᐊᓂᖅᑎᕆᐅᔪᑦ ᐃᓅᓂᑦ ᐊᑦᓗᖅᑐᐊᑦ",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。2024年5月１２日",
    "Traditional Chinese": "人人生而自由,在尊嚴和權利上一律平等。羅 豈 更 車 塚",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。ガギグパピプ ｶﾞﾊﾟ",
    "Korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 각 갂 갃",
    "Gothic": "𐌰𐌻𐌻𐌰𐌹 𐌼𐌰𐌽𐌽𐌰 𐌺𐌰𐌽 𐌲𐌻𐌴𐍃 𐌹̈𐍄𐌰𐌽",
    "Mathematics": "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β; 𝒜𝓫𝔠 ½ ²³ Ⅷ ㉛ Å Ω K",
}

CODE = [
    "def f(x):\n    return x**2 + 1  # comment\n\n\nclass A(B):\n\tdef __init__(self, *args, **kwargs):\n\t\tpass\n",
    "for (int i = 0; i < 10; ++i) {\r\n  printf(\"%d\\n\", a[i]->next);\r\n}\r\n",
    "#include <vector>\n#define MAX(a,b) ((a)>(b)?(a):(b))\ntemplate <typename T> constexpr auto x = T{};\n",
    "const f = async ({a, b = 1}) => `${a}/${b}`; // TODO: don't\n",
    "<html><body class=\"x-y\">&nbsp;<a href='https://example.org/?q=1&r=2#z'>link</a></body></html>\n",
    '{"key": [1, 2.5e-3, true, null, "caf\\u00e9"], "nested": {"a": {}}}\n',
    "SELECT * FROM t WHERE a_id >= 42 AND name LIKE '%x%' ORDER BY 1;\n",
    "$ git log --oneline | awk '{print $1}' && echo \"done\" > /dev/null 2>&1\n",
    "\\begin{equation}\\frac{a}{b}=\\sum_{i=1}^{n}x_i\\end{equation}\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```c\nint x;\n```\n",
    "fn main() -> Result<(), Box<dyn Error>> { let x: &'static str = \"a\"; println!(\"{x:?}\"); Ok(()) }\n",
    "x = 0xDEADBEEF + 0b1010 + 1_000_000 + 3.14e10;;;  ///// //// ==== !!== ->> <<=\n\n\n\n    y\t\t z   \n",
]

EMOJI = [
    "😀😃😄 🙂🙃", "👨‍👩‍👧‍👦 👩‍🚀 🧑🏽‍🤝‍🧑🏻", "🇩🇪🇫🇷🇯🇵 🏴󠁧󠁢󠁳󠁣󠁴󠁿", "👍🏻👍🏼👍🏽👍🏾👍🏿", "1️⃣2️⃣#️⃣ ❤️ ❤︎ ☺️", "a😀b 😀c😀😀\n😀", "🏳️‍🌈🏳️‍⚧️ ✊🏿", "🫠🫨🪿 🩷",
]

MARKS = [
    "e\u0301 \u00e9 \u0301 a\u0301\u0323 a\u0323\u0301 q\u0307\u0323 \u1e0b\u0323 \u1e0d\u0307",
    "\u212b \u00c5 A\u030a \u2126 \u1e9b\u0323 \ufb01 \u0958 \u0915\u093c \u0344 \u0308\u0301 \u0340\u0341\u0343",
    "\u1100\u1161\u11a8 \uac00\u11a8 \u1100\uac00 \u1161\u11a8 \uac01\u11a8 \u1112\u1175\u11c2",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034dA\u036b\u0357\u0334",
    "\u09c7\u09be \u09c7\u0301\u09be \u0b47\u0b56 \u0bc6\u0bbe \u1025\u102e \u0dd9\u0dcf\u0dca",
    "\ufb2c \ufb1f \u2adc \U0001d15e \U0001d1bf \U00011099\U000110ba \uf900\u2f800",
    "a\u0300\u0301\u0302\u0303\u0304 \u0300a \n\u0300 \u200d\u0300 1\u0300 .\u0300a",
    "\U00011935\U00011930 \U00011938 \U000105d2\u0307 \U000113c2\U000113c2",
]

WHITESPACE = [
    "", " ", "  ", "   a", "a ", "a  ", "\n", "\n\n", "\n\nHi", "a\n\n\n b", "\r\n\r\nx", " \n \n x", "\t\tx", " \t x", "\u00a0x \u00a0 x",
    "\u3000x\u3000\u3000y", "\u2028x\u2029\n", "\u0085x", "x\u200by", "\u180ex", "\ufeffx", "a\u2003b\u2003\u2003c", "\x0b\x0c\x1c\x1d\x1e\x1f x",
    "  \n", "\n  ", "\n  \nx", " \r", "\r \r x", "\x00", "a\x00b \x00\x00 c", "\x7f\x80\x9f",
]

GRAMMAR = [
    "->", "(x):\n", "12345", "x12345.678,9", "١٢٣ ²³ ½¾ ⅧⅨ ㊿", "I'm I'M i'M he'll HE'LL we've WE'VE they'Re it's IT'S I'd I'D can't CAN'T",
    "'s's 'sx 'S'ſ x'ſ 'ſs 'ls 'l 'll' ''ll 'r 're 'rE 'RE 've 'Ve 'T'", "\u2019s it\u2019s don\u2019t", "'\u0301s 's\u0301 '",
    "HelloWorld helloWORLD ABCdef iPhone XMLHttpRequest ǅungla ǄUNGLA aªbºc ʰx Aʰ日本X日x", "AB\u0301C aB\u0301 \u0301AB \u0301a ªAA ªAaA AªAªAA",
    "//path/to//file/ http://x/ a/\n/ !/\n\r/x", "foo_bar-baz.qux@example.org", "!!!\n\n???\r\n\r\n...", "a!b !c  !d\n!e", " '\n's", "don't\nDON'T\n",
    "1'2 3's 4 's", "$100 €5 £3.50 ¥1000 50%", "x²+y² m³ CO₂", "a\u0300b c\u0327a", "ﬀ ﬁ ŉ ǰ ß ẞ İ ı K Å",
]

CONTROL = [
    "<|endoftext|>", "<|im_start|>system\nYou are.<|im_end|>\n<|im_start|>user", "a<|im_end|>b", "the marker is <|endoftext|> here",
    "<|im_end", "<|im_end|", "<|im_end|>>", "<<|im_end|>", "<|im_start|><|im_start|>", " <|im_end|> ", "<think>\n\n</think>\n\n",
    "<tool_call>{}</tool_call>", "e<|im_end|>\u0301", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
]


def long_runs(length):
    return [c * (length // len(c)) for c in ("a", " ", "\n", "\r\n", "\t", "1", "=", "-", "/", "😀", "あ", "é", "e\u0301", "\u0301", "ab ", "A", "aB", "\u0301\u0323", " \n", "'s", ".\n", "가", "\u1100\u1161")]


def curated():
    strings = list(TEXTS.values()) + CODE + EMOJI + MARKS + WHITESPACE + GRAMMAR + CONTROL
    strings += [unicodedata.normalize("NFD", t) for t in TEXTS.values()]
    strings += [t.upper() for t in TEXTS.values()]
    strings += [w for t in TEXTS.values() for w in t.split()[:6]]
    return strings


def pools():
    """Characters by what a tokenizer may treat alike."""
    by_category = {}
    for c in range(0x110000):
        if not 0xD800 <= c < 0xE000:
            by_category.setdefault(unicodedata.category(chr(c)), []).append(chr(c))
    by_category["space"] = [c for c in map(chr, range(0x10000)) if c.isspace()]
    by_category["decomposed"] = [chr(c) for c in range(0x30000) if unicodedata.decomposition(chr(c))]
    by_category["combining"] = [chr(c) for c in range(0x20000) if unicodedata.combining(chr(c))]
    by_category["jamo"] = [chr(c) for c in range(0x1100, 0x1200)]
    by_category["hangul"] = [chr(c) for c in range(0xAC00, 0xD7A4)]
    return by_category


class Random:
    """Random strings of several kinds."""

    TIGHT = " \n\r\t'sStTrReEvVmMlLdDaA1.-/\u00a0"

    def __init__(self, seed, alphabet_texts=True):
        self.random = random.Random(seed)
        self.pools = pools()
        self.names = sorted(self.pools)
        self.texts = list(TEXTS.values()) + CODE

    def of_all(self):
        r = self.random
        return "".join(r.choice(self.pools[r.choice(self.names)]) for _ in range(r.randint(1, 24)))

    def of_few_classes(self):
        r = self.random
        names = r.sample(self.names, 3)
        return "".join(r.choice(self.pools[r.choice(names)]) if r.random() < 0.7 else r.choice(self.TIGHT) for _ in range(r.randint(1, 30)))

    def tight(self):
        r = self.random
        few = r.sample(self.TIGHT, r.randint(2, 8))
        return "".join(r.choice(few) for _ in range(r.randint(1, 24)))

    def marked(self):
        r = self.random
        out = []
        for _ in range(r.randint(1, 6)):
            out.append(r.choice("aeiouqAEIOUQcdlnrstz \n1") if r.random() < 0.6 else r.choice(self.pools[r.choice(("decomposed", "Lo", "hangul", "jamo"))]))
            out += [r.choice(self.pools["combining"]) for _ in range(r.choice((0, 0, 1, 1, 2, 3, 8)))]
        return "".join(out)

    def changed_text(self):
        r = self.random
        text = r.choice(self.texts)
        begin = r.randrange(len(text))
        chars = list(text[begin : begin + r.randint(1, 60)])
        for _ in range(r.randint(0, 4)):
            chars.insert(r.randint(0, len(chars)), r.choice(self.pools[r.choice(self.names)]) if r.random() < 0.5 else r.choice(self.TIGHT))
        text = "".join(chars)
        return unicodedata.normalize("NFD", text) if r.random() < 0.2 else text

    def string(self):
        return self.random.choice((self.of_all, self.of_few_classes, self.tight, self.marked, self.changed_text))()

    def strings(self, count):
        return [self.string() for _ in range(count)]
