"""The lists behind the lint: what a reply must not say. This is the one place to add or drop a word.

Every entry is a regular expression that is matched on folded text: lower case, half width, no spaces beside Chinese
characters, full-width punctuation as half-width (，！？ become ,!? and 。 stays), traditional characters as simplified.
"""

from dataclasses import dataclass

from app.msgids import msgid


@dataclass(frozen=True, slots=True)
class WordList:
    """Words under one label (an English msgid)."""

    label: str
    words: tuple[str, ...]


SENSITIVE = (
    WordList(
        msgid("Insulting word"),
        (
            *("傻逼", "傻子", "傻瓜(?!相机|式|操作)", "白痴", "智障", "弱智", "脑残", "蠢货", "蠢猪", "笨蛋", "神经病"),
            *(
                "有病吧",
                "滚开",
                "滚蛋",
                "滚出去",
                "给我滚",
                "闭嘴",
                "废物(?!回收|利用|处理|箱)",
                "他妈的",
                "你妈",
                "去死",
            ),
            *("不要脸", "厚脸皮", "穷鬼", "刁民", "无赖", "泼妇", "乡巴佬", "垃圾(?:客户|用户|人)"),
            *("idiots?", "stupid", "morons?", "shut up", "dumb", "fuck(?:ing)?", "(?:bull)?shit", "damn", "assholes?"),
        ),
    ),
    WordList(
        msgid("Blames the customer"),
        (
            *(
                "怪[你您]自己",
                "是[你您]自己(?:的(?:问题|错|原因|责任)|没看|不看|不会|弄错|弄坏|造成)",
                "谁[让叫][你您]",
                "[你您]自己(?:不看|没看|看不懂|弄错|活该)",
                "活该",
                "无理取闹",
            ),
            *("胡搅蛮缠", "不识抬举", "没事找事", "爱[买要信用]不[买要信用]", "随便[你您](?:去)?(?:投诉|告|举报)"),
            *("[你您]去(?:投诉|告)(?:吧|啊)", "(?:关我|关我们)什么事", "不关我们?的?事", "跟我们没关系"),
            *("your own fault", "you should have known", "not our problem", "deal with it"),
        ),
    ),
    WordList(
        msgid("Internal matter"),
        (
            *(
                "绝密",
                "机密(?:文件|资料)",
                "内部价",
                "内部系统",
                "内部资料",
                "内部消息",
                "内部名额",
                "员工价",
                "走后门",
            ),
            *("internal (?:price|system|document)s?", "off the record", "under the table"),
        ),
    ),
    WordList(
        msgid("Deal outside the platform"),
        (
            *(
                "私下(?:转账|交易|退款|解决|联系|补偿)",
                "加我?(?:的)?(?:个人)?微信",
                "微信转账给",
                "转到我?(?:的)?个人账户",
            ),
            *("刷单返(?:现|利)", "好评返现", "返现好评", "改成好评", "删除?差评"),
            *("add me on (?:wechat|whatsapp)", "pay me directly"),
        ),
    ),
    WordList(
        msgid("Asks for a password or code"),
        (
            r"(?:请|麻烦|劳烦)(?:[你您])?(?:先)?(?:把|将)?(?:提供|告知|告诉|发送|回复|发给?)[^,。!?;]{0,8}(?:密码|验证码|安全码|cvv)",
            r"把[^,。!?;]{0,6}(?:密码|验证码|安全码|cvv)(?:发|告诉|提供|给我)",
            r"(?:send|tell|give) (?:me|us) your (?:password|pin|verification code|cvv)",
        ),
    ),
    WordList(
        msgid("Absolute claim (advertising law)"),
        (
            *(
                "全网最",
                "全国最(?!新)",
                "史上最",
                "世界最",
                "最低价(?!格)",
                "最便宜",
                "最好的(?:产品|商品|质量|品质|服务)",
                "最优质",
            ),
            *("最先进", "最高级", "最顶级", "第一品牌", "销量第一", "(?:全国|全网|行业|世界|全球)第一", "顶级", "极品"),
            *("绝无仅有", "独一无二", "无与伦比", "史无前例", "世界级", "包治", "零风险", "100%(?:安全|有效|无害)"),
            *(
                "(?:lowest|best) price (?:anywhere|ever|guaranteed)",
                "number one brand",
                "no\\. ?1 brand",
                "risk[- ]free",
            ),
        ),
    ),
)

_OUTCOME = (
    "到账|退款|退钱|退回|退还|全额|赔偿|赔付|补偿|补发|解决|处理好|办好|修好|送达|送到|到货|发货|收到|通过|成功|恢复"
    "|没问题|没有问题|满意|有货|不会再|[能会可]退|给[你您]退"
)
_EN_OUTCOME = (
    "refund(?:ed)?|compensat\\w+|repaid|repay|deliver\\w*|arriv\\w+|resolv\\w+|fix(?:ed)?|replac\\w+|approv\\w+"
)
_VOW = "保证(?!金|书|人)|包您|包你|担保(?!金|书|人|方|交易|公司)|准保|打包票|妥妥"
_HUNDRED = "百分之(?:百|一百|100)|百分百|100 ?%"
_AT_ONCE = "(?:马上|立刻|立马|即刻|立即)(?:就)?(?:能|会|可以?|将)?"
_UNLIKE_PROMISES = "程度|范围|条件|时间|期限|比例|金额|数量|要|记得|别|不要|的|需要|得"

PROMISES = (
    WordList(
        msgid("Promises an outcome"),
        (
            rf"(?:{_VOW})[^,。!?;]{{0,24}}?(?:{_OUTCOME})",
            rf"(?:(?<![品量质])保证|担保|打包票),[^,。!?;]{{0,4}}?(?:{_OUTCOME})",
            rf"(?<!不)一定(?!{_UNLIKE_PROMISES})[^,。!?;]{{0,24}}?(?:{_OUTCOME})",
            rf"(?:绝对|肯定|必定|必然|铁定|{_HUNDRED})[^,。!?;]{{0,24}}?(?:{_OUTCOME})",
            rf"(?:退款|赔偿|到账|解决|处理)[^,。!?;]{{0,4}}(?:{_HUNDRED}|绝对|包在我们?身上)",
            r"承诺[^,。!?;]{0,24}?(?:退款|退钱|赔偿|赔付|补偿|到账|全额)",
            r"(?:绝|绝对|保证)?不会再(?:发生|出现|有)(?:类似|这样|这种|此类)",
            *(
                "必(?:到账|退|赔)(?!须)",
                "包(?:退款|退货|赔)",
                "万无一失",
                "绝无问题",
                "包在我们?身上",
                "假一赔[十百万]",
            ),
            rf"\b(?:we|i) (?:can |will |do )?(?:guarantee|promise|assure)\b[^.!?;,]{{0,50}}?\b(?:{_EN_OUTCOME})\b",
            rf"\bguaranteed?\b[^.!?;,]{{0,20}}\b(?:{_EN_OUTCOME})\b",
            rf"\b(?:{_EN_OUTCOME})\b[^.!?;,]{{0,12}}\b(?:is|are|be) (?:100% )?guaranteed\b",
            rf"\b(?:definitely|certainly|absolutely|for sure|100%)[^.!?;,]{{0,20}}?\b(?:{_EN_OUTCOME})\b",
            r"\bwill never happen again\b",
        ),
    ),
    WordList(
        msgid("Promises instant money"),
        (
            rf"{_AT_ONCE}(?:[给为][你您])?(?:办理|处理|安排)?(?:到账|赔偿|赔付|打款|(?:全额)?退款|退钱)",
            *("秒到账?", "秒退", "秒赔"),
            r"\b(?:instant|immediate) (?:refund|compensation)\b",
            r"\b(?:refund|compensate|repay) you (?:immediately|instantly|right away)\b",
        ),
    ),
    WordList(
        msgid("Promises without conditions"),
        (
            *("无条件(?:退款|退货|退换|赔偿|赔付|补偿|退)", "不限条件(?:退|赔)", "无论(?:什么|任何)原因都(?:退|赔)"),
            *(r"\bunconditional (?:refund|return)s?\b", r"\bno questions asked\b"),
        ),
    ),
)

NOT_A_PROMISE = (
    r"(?:不能|不可能|不可|无法|没法|不会|不敢|不予|不得|不再|不|未|没有|没|难以|并非|并未|勿|(?<![特分级类])别|能否|是否|可否)"
    r"(?:完全|向[你您]|给[你您]|对此|百分之百|百分百|100%|绝对|作出|做出)?$"
    r"|(?:(?<![认因作成视行])为|为了|(?<![可所])以|便于|以便)$|为了[^,。!?;]{0,4}$|(?<!申)请(?:[你您])?(?:务必|先|尽量)?$|需要?[你您]?$"
    r"|(?:not|n't|never|neither|nor)(?: (?:be|fully|100%|a))*\s?$|(?:whether|if) (?:we|i) (?:can )?$"
)
"""What right before a promise turns it into none: 不能保证, 为了保证, 请您保证, cannot be guaranteed."""
