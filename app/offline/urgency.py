"""Which tickets can't wait, by rules a person can read. Pure: text in, ground out.

The rules look at what is said to have happened, not at how loudly: a calm report of a stolen account is urgent, a
furious question about a coupon is not.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Ground(StrEnum):
    """Why a ticket is urgent. The value is data for staff, in the language of the tickets."""

    SAFETY = "涉及人身安全"
    MONEY = "涉及账号或资金安全"
    LAW = "提到法律、监管、报警或媒体"
    LEAK = "涉及个人信息泄露或诈骗"
    OUTAGE = "多人同时受影响，疑似大面积故障"
    REPEATED = "多次投诉后要求升级处理"


@dataclass(frozen=True, slots=True)
class Urgency:
    """The first ground found, and the words of the ticket that show it."""

    ground: Ground
    words: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """`happened` must be said, and `together_with` stand anywhere in the ticket. `threat`: "if not, I will" counts."""

    ground: Ground
    happened: re.Pattern[str]
    together_with: re.Pattern[str] | None = None
    threat: bool = False


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_GAP = r"[^，。！？；,.!?;\n]"
_NEGATED = _any(
    rf"(?:没有?|没发生|并未|未曾|从未|不会|不打算|有无|不是|无(?![缘故端])){_GAP}{{0,2}}$",
    rf"\b(?:no|not|never|without){_GAP}{{0,5}}$",
)
"""Directly before the words. "不想" is missing on purpose: "我不想走到起诉那一步" is a threat."""
_IMAGINED = _any(
    rf"(?:会不会|是否|能否|如果|要是|万一|假如|防止?|避免|预防|以免|免得|担心|怕|容易){_GAP}{{0,5}}$",
    rf"\b(?:if|avoid|prevent|will it|would it|does it|could it|can it|might){_GAP}{{0,5}}$",
)

_LOOK_BACK = 16

_HARMLESS = _any(
    r"空气炸锅|炸锅|气炸了?|炸毛|肺都?要?炸|群里?炸|炸鸡|炸物",
    r"跳楼价|火爆|火速|火锅|炉火|开火|点火|灶火|明火灶|打火|防火",
    r"烟雾报警器?|报警(?:器|声|音|灯|代码|提示)|(?:一直|自动|蜂鸣|老是|频繁|滴滴)报警|油烟机?|吸烟|抽烟|排烟",
    r"曝光(?:量|率|度)|(?:商品|店铺|提升|增加|提高|流量)曝光|自媒体|社交媒体|多媒体",
    r"个体工商户?|工商银行|工商(?:注册|登记|执照)|(?:快递|包裹|外卖)[^，。！？\n]{0,6}被?(?:盗|偷)",
    r"(?:打|划|割)伤眼|划(?:伤|破)了?(?:锅|桌|台|漆|表面|屏|地板)|烫(?:伤|坏)了?(?:桌|台|地板)|烫金|漏电保护器?|防触电",
    r"fire\s?(?:place|pit|wall)|fire\s?tv|smokeless|smoked|smoke gr[ea]y|court(?:esy|yard)|breadcrumbs?",
)

_SAFETY = _any(
    r"冒(?:了|出|着|起)?(?:一股|大|黑|白|浓|好多)?烟|起火|着火|失火|冒火|烧起来|火苗|火花|火星|自燃|烧焦|焦[糊煳]味|焦味|糊味",
    r"漏电|触电|电到|被电|电了(?:我|一下|他|她)|麻手|手(?:被|都)?(?:电)?麻了|手?发麻|短路",
    r"(?:像是|好像|外壳|机身|摸)[^，。！？\n]{0,4}带电",
    r"爆炸|炸裂|炸开|炸了|爆裂|爆开|漏了?(?:煤气|燃气)|(?:煤气|燃气)泄[漏露]|煤气味|一氧化碳",
    r"烫(?:伤|到|着|破|起泡|了(?:手|个泡))|(?:手|脚|腿|胳膊|脸|身上|孩子|宝宝|妈|爸|老人)[^，。！？\n]{0,3}烫(?:了|得)",
    r"烧伤|灼伤",
    r"割(?:伤|破|到|了)(?!草|膜)|划(?:伤|破)|扎(?:伤|到)|砸(?:伤|到|中)|夹(?:伤|到手)|撞(?:伤|到)|摔(?:伤|下来)",
    r"受伤|流血|出血|骨折|昏迷|晕倒|窒息|中毒|误食|误吞|吞(?:了|下|进|咽下)|咽下|咬下去|呕吐|拉肚子|起疹子|红疹|过敏反应",
    r"(?:去|送|在|到|跑)(?:了|往)?[^，。！？\n]{0,4}(?:医院|急诊|急救)|急诊|住院|抢救|叫救护车|打120",
    r"自杀|轻生|跳楼|不想活|死给你",
    r"\bsmok(?:e|es|ing)\b|caught fire|on fire|\bflames?\b|\bspark(?:s|ed|ing)?\b|burn(?:ed|t|ing)\b|\bshocked me\b",
    r"electric(?:al)? shock|got a shock|electrocut\w*|explo(?:d|s)\w+|gas leak|injur\w+|bleed\w*",
    r"hospital|emergency room",
    r"swallow\w*|poison\w*|choking|scald\w*|suicid\w*",
)
_MONEY = _any(
    r"(?:账[号户]|帐[号户]|会员号|(?<!包裹)号|密码)[^，。！？\n]{0,8}(?:被盗|被偷|被黑|被人?(?:登|改|冒用))|盗号|盗刷|盗用|被盗",
    r"(?:不是|并非|没有|非)(?:我|本人)(?:自己)?[^，。！？\n]{0,4}(?:下的?单?|操作|买的|付的|刷的|消费|登[录陆])",
    r"(?:我|本人)(?:根本)?没有?(?:下过|付过|刷过|操作过|登[录陆]过)",
    r"(?:异地|陌生(?:设备|城市|地方|人)?)[^，。！？\n]{0,6}登[录陆]|在[^，。！？\n]{1,8}登[录陆]过",
    r"(?:钱|余额|卡里|账户|礼品卡|存款)[^，。！？\n]{0,10}被(?:别?人)?(?:转|刷|划|盗|花|清|消费)",
    r"(?:钱|余额|卡里|账户|礼品卡|存款)[^，。！？\n]{0,10}(?:莫名|无缘无故)[^，。！？\n]{0,4}(?:少|没|不见)",
    r"被(?:别?人)?(?:转走|刷走|划走)|莫名(?:其妙)?被?(?:扣|转|刷)了?[^，。！？\n]{0,4}\d{3,}",
    r"hack(?:ed|er)|stolen (?:account|card|password)",
    r"account (?:was |has been |got |is )?(?:stolen|compromised|taken over)",
    r"unauthori[sz]ed|(?:did ?n[o'’]t|never) (?:make|place|order|authori[sz]e)|logged in from|fraudulent",
)
_LAW = _any(
    r"律师函|律师信|(?:委托|找|请|咨询|联系|聘)[^，。！？\n]{0,4}律师|我们?的?(?:代理)?律师(?!事务所|证|，|,)|法务|起诉|诉讼|上诉|法院|法庭",
    r"官司|仲裁委|走法律|法律(?:途径|程序|手段|责任)|依法维权",
    r"12315|12345|12358|(?<!\d)3[·.]?15(?:晚会|投诉)|消协|消费者协会|消保委|市场监管|市监局|监督管理局|主管部门",
    r"工商(?:局|部门|投诉|举报)|(?:找|向|到)工商|监管(?:部门|局|机构)|银保监|网信办|信访",
    r"记者|电视台|媒体|报社|民生栏目|曝光|上热搜",
    r"(?:要|会|已|已经|去|准备|只能|就|马上|打算|想|直接|已向)报了?警|报了?警(?:处理|了|立案|回执)|派出所|公安|打110|经侦",
    r"\b(?:lawyers?|attorney|solicitor|lawsuit|legal action|small claims|sue|suing|court|regulator|police)\b",
    r"consumer (?:protection|association|rights)|\b(?:journalists?|reporters?|newspaper|the press)\b",
)
_WHOSE = r"(?:别人|他人|陌生人|其他(?:人|用户|客户))的?"
_LEAK = _any(
    r"(?:信息|资料|隐私|电话|手机号|地址|数据|身份证)[^，。！？\n]{0,8}(?:泄露|泄漏|外泄|被卖|卖给|流出)",
    r"泄[露漏]了?(?:我|用户|客户|个人)",
    rf"(?:看到|看见|显示|变成|登进去是|收到)(?:了|的是)?[^，。！？\n]{{0,4}}{_WHOSE}[^，。！？\n]{{0,3}}(?:订单|地址|电话|信息|姓名|账号|资料)",
    r"(?:骗子|冒充|自称|陌生人|对方)[^。！？\n]{0,40}(?:知道|报出|说出|说得?|准确)[^。！？\n]{0,12}(?:姓名|名字|地址|订单|电话|买[的了])",
    r"data (?:leak|breach)|leak(?:ed|ing)? (?:my|our|personal|customer)",
    r"(?:my|personal) (?:data|information|details)[^.!?\n]{0,20}leak",
    r"some(?:one|body) else['’]?s (?:order|address|account|name)",
)
_SCAM = _any(
    r"被(?:人)?骗|诈骗|骗(?:走|了我)|上当|冒充|自称[^，。！？\n]{0,6}客服|scam\w*|fraud\w*|phish\w*|pretend\w* to be"
)
_SCAM_SIGN = _any(
    r"骗走|转(?:走|账|了|过去)|汇(?:款|了)|验证码|屏幕共享|共享了?屏幕|会议软件|打来?电话|来电|短信|链接|银行卡|贷款|理赔",
    r"\bcode\b|transfer\w*|\blink\b|\bbank\b|\bcall(?:ed|er)?\b",
)
_MANY = _any(
    r"(?:所有|很多|好多|不少|十几|几十|上百|多个|好几)个?[^，。！？\n]{0,3}(?:人|用户|同事|客户|顾客|买家|朋友|部门|公司|店铺)",
    r"全(?:公司|店|部门|家|办公室|员)|大家|整个(?:公司|部门|办公室|团队)|同事[^，。！？\n]{0,12}都|群里",
    r"(?:every|no)(?:one|body)|all of us|our whole|whole (?:team|office|company)|many (?:people|users|customers)",
    r"(?:my|all|other) (?:colleagues|customers|users|friends)",
)
_DOWN = _any(
    r"(?:付|支付)不了|付不了?款|(?:无法|不能)(?:付款|支付|登[录陆]|下单|打开)|打不开(?!盖|包装|瓶|门|罐|快递|箱)|进不去",
    r"登不[上进]|登[录陆]不[了上]|下不了单|崩了|崩溃|瘫痪|宕机|白屏|报错|系统故障|用不了|E-\d{4}",
    r"can(?:no|['’])?t (?:pay|log ?in|open|order|check ?out|access)|can (?:pay|log ?in|check ?out)",
    r"(?:is|are|went) down|outage",
)
_MANY_DOWN = _any(
    rf"(?:{_MANY.pattern})[^，,。！!？?；\n]{{0,30}}(?:{_DOWN.pattern})",
    rf"(?:{_DOWN.pattern})[^，,。！!？?；\n]{{0,30}}(?:{_MANY.pattern})",
)
_AGAIN = _any(
    r"第[二三四五六七八九十2-9]次|[两三四五六七八九2-9][次回]",
    r"多次|反复|再三|一再",
    r"又(?:一次)?投诉|再次(?:投诉|反映)",
    r"(?:投诉|反映)过",
    r"(?:second|third|fourth|fifth|\d(?:nd|rd|th)) (?:time|complaint)|\btwice\b|again and again",
    r"repeatedly|several times",
)
_ABOVE = r"(?:主管|领导|经理|负责人|上级)"
_ESCALATE = _any(
    rf"(?:投诉|反映|反馈)[^。！？\n]{{0,60}}(?:{_ABOVE}|升级)|(?:{_ABOVE}|升级)[^。！？\n]{{0,60}}(?:投诉|反映|反馈)",
    rf"{_ABOVE}[^。！？\n]{{0,10}}(?:处理|出面|出来|回电|解决|联系)",
    r"complain\w*[\s\S]{0,160}(?:manager|supervisor|escalat\w+)",
    r"(?:manager|supervisor|escalat\w+)[\s\S]{0,160}complain",
)

_RULES = (
    _Rule(Ground.SAFETY, _SAFETY),
    _Rule(Ground.LEAK, _SCAM, _SCAM_SIGN),
    _Rule(Ground.MONEY, _MONEY),
    _Rule(Ground.LEAK, _LEAK),
    _Rule(Ground.LAW, _LAW, threat=True),
    _Rule(Ground.OUTAGE, _MANY_DOWN),
    _Rule(Ground.REPEATED, _ESCALATE, _AGAIN, threat=True),
)


def find_urgency(text: str) -> Urgency | None:
    """Return why `text` (subject and content of a ticket) is urgent, or None."""
    plain = _HARMLESS.sub(lambda found: "□" * len(found[0]), text)
    for rule in _RULES:
        if rule.together_with is not None and not rule.together_with.search(plain):
            continue
        for found in rule.happened.finditer(plain):
            before = plain[max(0, found.start() - _LOOK_BACK) : found.start()]
            if not _NEGATED.search(before) and (rule.threat or not _IMAGINED.search(before)):
                return Urgency(rule.ground, found[0].strip())
    return None
