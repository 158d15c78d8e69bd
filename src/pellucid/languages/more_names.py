"""Names and codes of languages that only models of a hundred languages have, such as NLLB."""

from __future__ import annotations

_ROWS = """
ace Acehnese|acm Mesopotamian Arabic|acq Ta'izzi-Adeni Arabic|aeb Tunisian Arabic|aka,ak Akan
ajp South Levantine Arabic|apc North Levantine Arabic|ars Najdi Arabic|ary Moroccan Arabic
arz Egyptian Arabic|asm,as Assamese|ast Asturian|awa Awadhi|ayr,ay Central Aymara,Aymara
azb South Azerbaijani|bak,ba Bashkir|bam,bm Bambara|ban Balinese|bem Bemba|bho Bhojpuri
bjn Banjar|bod,bo Tibetan|bre,br Breton|bug Buginese|ceb Cebuano|cjk Chokwe
ckb Central Kurdish,Sorani|crh Crimean Tatar|dik Southwestern Dinka|dyu Dyula|dzo,dz Dzongkha
ewe,ee Ewe|fao,fo Faroese|fij,fj Fijian|fon Fon|fry,fy Western Frisian,Frisian|ff,ful Fulah
fur Friulian|fuv Nigerian Fulfulde|gla,gd Scottish Gaelic|grn,gn Guarani|hat,ht Haitian Creole
hau,ha Hausa|hne Chhattisgarhi|ibo,ig Igbo|ilo Ilocano|jav,jv Javanese|kab Kabyle|kac Jingpho
kam Kamba|kas,ks Kashmiri|knc Central Kanuri|kbp Kabiyè|kea Kabuverdianu|kik,ki Kikuyu
kin,rw Kinyarwanda|kmb Kimbundu|kon,kg Kikongo|kmr,ku Northern Kurdish,Kurmanji,Kurdish
lij Ligurian|lim,li Limburgish|lin,ln Lingala|lmo Lombard|ltg Latgalian|ltz,lb Luxembourgish
lua Luba-Kasai|lug,lg Ganda|luo Luo|lus Mizo|mag Magahi|mai Maithili|min Minangkabau
plt,mg,mlg Plateau Malagasy,Malagasy|mni Meitei|mos Mossi|mri,mi Maori|nso,ns Northern Sotho
nus Nuer|nya,ny Nyanja,Chichewa|gaz,om,orm West Central Oromo,Oromo|ory,or,ori Odia,Oriya
pag Pangasinan|pap Papiamento|prs Dari|pbt,ps,pus Southern Pashto,Pashto
quy,qu,que Ayacucho Quechua,Quechua|run,rn Rundi|sag,sg Sango|san,sa Sanskrit|sat Santali
scn Sicilian|shn Shan|smo,sm Samoan|sna,sn Shona|snd,sd Sindhi|som,so Somali
sot,st Southern Sotho|srd,sc Sardinian|ssw,ss Swati|sun,su Sundanese|szl Silesian|tat,tt Tatar
tgk,tg Tajik|tir,ti Tigrinya|taq Tamasheq|tpi Tok Pisin|tsn,tn Tswana|tso,ts Tsonga
tuk,tk Turkmen|tum Tumbuka|twi,tw Twi|tzm Central Atlas Tamazight|uig,ug Uyghur|umb Umbundu
vec Venetian|war Waray|wol,wo Wolof|xho,xh Xhosa|ydd,yi,yid Eastern Yiddish,Yiddish|yor,yo Yoruba
yue Yue Chinese,Cantonese|zul,zu Zulu
"""
"""The codes of each language, and its names in English, both with commas between them."""

_GROUPS = [
    (codes.split(","), names.split(","))
    for codes, _, names in (
        row.partition(" ") for row in _ROWS.replace("\n", "|").strip("|").split("|")
    )
]
_OTHERS = {one.casefold(): codes for codes, names in _GROUPS for one in (*codes, *names)}
NAMES = {code: names[0] for codes, names in _GROUPS for code in codes}
"""The name of each language by any of its codes."""


def other_codes(language: str) -> list[str]:
    """List the codes of a language that is named by one of them, or in English; maybe none."""
    return _OTHERS.get(language.strip().casefold(), [])
